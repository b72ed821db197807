"""Fetches and checks the jars that the broker and Spark need, once per machine.

The list is `jars.lock`; the download is left to the Ivy that ships inside PySpark, so the jars come
from wherever Ivy gets them (its default, or the settings file that HEADRACE_IVY_SETTINGS names).
They land in HEADRACE_HOME; HEADRACE_JARS names a directory that holds them already.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from headrace.kafka.java_home import find_java
from headrace.model.errors import UnavailableError
from headrace.model.home import home

Progress = Callable[[str], None]

# The list is complete and hashed, so Ivy need not read POMs nor fetch checksums: 8 s, not 40 s.
IVY_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="public"/>
  <timeout-constraints>
    <timeout-constraint name="patience" connectionTimeout="10000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="public" m2compatible="true" usepoms="false" useMavenMetadata="false"
             checksums="" timeoutConstraint="patience"/>
  </resolvers>
</ivysettings>
"""


@dataclass(frozen=True)
class Pin:
    """One jar of the list: which set it is in, where it comes from, what it must hash to."""

    set: str
    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.revision}.jar"


@dataclass(frozen=True)
class Jars:
    """Where the jars are: the broker's class path, and what Spark needs beyond PySpark's own."""

    broker: list[Path]
    spark: list[Path]


@cache
def pins() -> tuple[Pin, ...]:
    text = resources.files(__package__).joinpath("jars.lock").read_text()
    rows = re.findall(r"^(\w+) (\S+?):(\S+?):(\S+) (\w+)$", text, re.MULTILINE)
    return tuple(Pin(*row) for row in rows)


def ensure_jars(progress: Progress = lambda _: None) -> Jars:
    """The jars, fetched first where they are missing or damaged."""
    if given := os.environ.get("HEADRACE_JARS"):
        return _given_jars(Path(given).expanduser().absolute())
    directory = home() / "jars"
    if _damaged(directory):
        with _only_one(directory, progress) as lock:
            # Whoever held the lock before may have fetched them all.
            if missing := _damaged(directory):
                _fetch(missing, directory, lock, progress)
    return _jars(lambda pin: directory / pin.set / pin.file)


def _jars(locate: Callable[[Pin], Path]) -> Jars:
    broker, spark = (
        [locate(pin) for pin in pins() if pin.set == kind] for kind in ("broker", "spark")
    )
    return Jars(broker, spark)


def _given_jars(directory: Path) -> Jars:
    """Jars that the user put there, side by side or in `broker/` and `spark/`."""

    def locate(pin: Pin) -> Path:
        in_set = directory / pin.set / pin.file
        return in_set if in_set.is_file() else directory / pin.file

    missing = [pin.file for pin in pins() if not locate(pin).is_file()]
    if missing:
        raise UnavailableError(
            f"HEADRACE_JARS is {directory}, but {len(missing)} of {len(pins())} jars are not "
            f"there ({_some(missing)}): add them, or unset HEADRACE_JARS to have them fetched."
        )
    return _jars(locate)


def _damaged(directory: Path) -> list[Pin]:
    return [pin for pin in pins() if not _intact(directory / pin.set / pin.file, pin)]


def _intact(file: Path, pin: Pin) -> bool:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == pin.sha256
    except OSError:
        return False


@contextmanager
def _only_one(directory: Path, progress: Progress) -> Iterator[int]:
    """Lets one process fetch at a time; the lock ends with the process, however it ends.

    Yields the lock's descriptor, for a child that must not be overtaken either.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / ".lock").open("w")
    except OSError as failure:
        raise UnavailableError(
            f"The jars cannot be kept in {directory} ({failure.strerror}): "
            "set HEADRACE_HOME to a directory that can be written."
        ) from failure
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("Waiting for another process that fetches the jars")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def _fetch(missing: list[Pin], directory: Path, lock: int, progress: Progress) -> None:
    # Ivy's own cache survives an interrupted fetch, so that the next one goes on from there;
    # a jar gets its final name only when it is whole.
    work = directory / ".ivy"
    work.mkdir(exist_ok=True)
    output = _run_ivy(missing, work, lock, progress)
    refused = []
    damaged = False
    for pin in missing:
        fetched = work / "fetched" / pin.set / pin.file
        if not _intact(fetched, pin):
            refused.append(pin)
            damaged |= fetched.exists()
            continue
        target = directory / pin.set / pin.file
        target.parent.mkdir(exist_ok=True)
        fetched.replace(target)
    if damaged or not refused:
        shutil.rmtree(work)
    if refused:
        log = directory / "ivy.log"
        log.write_text(output)
        raise UnavailableError(
            f"{len(refused)} of {len(pins())} jars could not be fetched "
            f"({_some(pin.file for pin in refused)}): connect this machine to the network, or set "
            f"HEADRACE_JARS to a directory that holds the jars; details are in {log}."
        )
    progress(f"Jars are ready in {directory}")


def _run_ivy(missing: list[Pin], work: Path, lock: int, progress: Progress) -> str:
    """Has Ivy fetch the jars into `work/fetched`; returns all that it said."""
    settings = os.environ.get("HEADRACE_IVY_SETTINGS")
    if not settings:
        settings = str(work / "settings.xml")
        Path(settings).write_text(IVY_SETTINGS)
    (work / "ivy.xml").write_text(_ivy_module(missing))
    retrieve = f"{work}/fetched/[conf]/[artifact]-[revision](-[classifier]).[ext]"
    command = [str(find_java().executable), *_proxy_options(), "-jar", str(_ivy_jar())]
    command += ["-settings", settings, "-ivy", str(work / "ivy.xml"), "-cache", str(work / "cache")]
    command += ["-retrieve", retrieve]
    progress(f"Fetching {len(missing)} jars into {work.parent}")
    output = []
    done = 0
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        pass_fds=[lock],
    ) as ivy:
        assert ivy.stdout is not None
        try:
            for line in ivy.stdout:
                output.append(line)
                if match := re.search(r"\[SUCCESSFUL \] \S+#(\S+?);([^!]+)!", line):
                    done += 1
                    progress(f"Fetched jar {done} of {len(missing)}: {match[1]} {match[2]}")
        finally:
            ivy.terminate()
    return "".join(output)


def _ivy_module(wanted: Iterable[Pin]) -> str:
    dependencies = "\n".join(
        f"<dependency org={quoteattr(pin.organisation)} name={quoteattr(pin.name)} "
        f'rev={quoteattr(pin.revision)} conf="{pin.set}->default" transitive="false"/>'
        for pin in wanted
    )
    return (
        '<ivy-module version="2.0"><info organisation="headrace" module="jars"/>\n'
        '<configurations><conf name="broker"/><conf name="spark"/></configurations>\n'
        f"<dependencies>\n{dependencies}\n</dependencies></ivy-module>\n"
    )


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        for jar in (Path(spec.origin).parent / "jars").glob("ivy-*.jar"):
            return jar
    raise UnavailableError("PySpark, whose Ivy fetches the jars, is not installed: run make setup.")


def _proxy_options() -> list[str]:
    """The proxy of the environment in Java's words, so that what pip can reach, Ivy can."""
    options = []
    for scheme in ("http", "https"):
        name = f"{scheme}_proxy"
        proxy = urlsplit(os.environ.get(name) or os.environ.get(name.upper()) or "")
        if proxy.hostname:
            options.append(f"-D{scheme}.proxyHost={proxy.hostname}")
            options.append(f"-D{scheme}.proxyPort={proxy.port or 80}")
    return options


def _some(names: Iterable[str]) -> str:
    """The first three names, and whether there are more."""
    every = list(names)
    return ", ".join(every[:3]) + (", …" if len(every) > 3 else "")


def _show(line: str) -> None:
    """One line that rewrites itself on a terminal, plain lines elsewhere."""
    ending = "\r" if sys.stdout.isatty() and line.startswith("Fetched") else "\n"
    print(f"{line:<79}" if ending == "\r" else line, end=ending, flush=True)


def main() -> int:
    try:
        jars = ensure_jars(_show)
    except UnavailableError as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"{len(jars.broker)} jars for the broker and {len(jars.spark)} for Spark are in place.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
