"""Which servers run on this machine, for a shell that was not told where its server is.

A server has a file in Headrace's home for as long as it runs, and holds a lock on it, which the
system lets go of with the process, however it ends: a file that can be locked is nobody's.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from headrace.model.home import home

# Who listens everywhere is found here.
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


@dataclass(frozen=True)
class LocalServer:
    url: str
    began: float

    @property
    def port(self) -> int | None:
        return urlsplit(self.url).port


def _directory() -> Path:
    return home() / "servers"


@contextmanager
def registered(url: str) -> Iterator[None]:
    """Tells shells of a server while it runs. Where nothing can be written, none are told."""
    file = _directory() / f"{os.getpid()}.json"
    try:
        lock = _write(file, _reachable(url))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()
        os.close(lock)


def _write(file: Path, url: str) -> int:
    file.parent.mkdir(parents=True, exist_ok=True)
    hidden = file.with_suffix(".new")  # nobody sees it before it is locked
    lock = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(lock, json.dumps({"url": url}).encode())
        hidden.rename(file)
    except OSError:
        os.close(lock)
        raise
    return lock


def _reachable(url: str) -> str:
    parts = urlsplit(url)
    host = _EVERYWHERE.get(parts.hostname or "")
    return url if host is None else f"{parts.scheme}://{host}:{parts.port}"


def local_servers() -> list[LocalServer]:
    """The servers that run here, the last one to begin first."""
    found = [server for file in _files() if (server := _read(file)) is not None]
    return sorted(found, key=lambda server: server.began, reverse=True)


def _files() -> list[Path]:
    try:
        return sorted(_directory().glob("*.json"))
    except OSError:
        return []


def _read(file: Path) -> LocalServer | None:
    with suppress(OSError, ValueError, KeyError), file.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return LocalServer(json.load(opened)["url"], os.fstat(opened.fileno()).st_mtime)
        file.unlink()
    return None
