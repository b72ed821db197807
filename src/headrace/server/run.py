"""Runs a server in the foreground until it is stopped or fails.

When Spark's JVM is gone, nothing in this process can be used again: its sessions and queries stood
for objects over there. So the program starts itself anew, in the same process (`exec`): whoever
supervises it need do nothing, and whoever has no supervisor needs none. If that happens too often,
it ends.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from headrace.model.secrets import without_login
from headrace.server.launch import LaunchOptions, RunningServer
from headrace.server.local_servers import registered

# What a program that could not go on ends with; and how often it may begin anew before that.
UNAVAILABLE = 69
MOST_STARTS = 5
STARTS_WITHIN_SECONDS = 600.0
STARTS = "HEADRACE_STARTED_ANEW"
# How often the main thread looks whether there was a signal.
LOOK_SECONDS = 0.5
# How long a server whose JVM is gone has to let go of its other parts.
LEAVE_SECONDS = 20.0
# How long a process that is done waits for threads that are not.
LAST_SECONDS = 3.0

# The command line by which the same server starts again, of the addresses that it has now.
Again = Callable[[Mapping[str, str]], Sequence[str]]


def announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def serve(
    options: LaunchOptions,
    then: Callable[[RunningServer], int] | None = None,
    again: Again | None = None,
) -> int:
    """Starts a server, prints its addresses, and serves until Ctrl-C or SIGTERM.

    `then` is something to do once the server is up; a result other than 0 ends it at once. If
    Spark's JVM dies, it starts again as `again` says, or ends.
    """
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    environment = dict(os.environ)  # Spark will change it
    asked, stop = threading.Event(), threading.Event()
    losses: list[str] = []

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        asked.set()
        stop.set()

    def lose(reason: str) -> None:
        losses.append(reason)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask_to_stop)
    began = time.monotonic()
    server = RunningServer(options, announce, lose)
    with server:
        # What is there now will stay. To look through it again and again, which is what the garbage
        # collector does, takes a tenth of a second each time, in which nothing else runs.
        gc.collect()
        gc.freeze()
        announce(f"Headrace is ready after {time.monotonic() - began:.1f} s")
        for name, address in server.addresses.items():
            announce(f"  {name:<9} {without_login(address)}")
        announce(f"  {'data':<9} {_data(options)}")
        with registered(server.url):
            if then is not None:
                code = then(server)
                if code or asked.is_set():
                    return code
            for notice in server.notices:
                announce(f"!! {notice}")
            announce("Ctrl-C stops it.")
            await_event(stop)
        if losses and not asked.is_set():
            _leave(server)
            command = None if again is None else again(server.addresses)
            return _begin_anew(losses[0], environment, command, asked)
        announce("Stopping: running micro-batches finish")
    return 0


def _data(options: LaunchOptions) -> str:
    if options.temporary:
        return "kept for this run only"
    return str(options.data_dir.absolute())


def await_event(event: threading.Event) -> None:
    """Waits in the main thread for what a signal's handler sets. Only this thread runs handlers,
    and a signal that another one took, as when the process goes on after it was frozen, does not
    wake it."""
    while not event.wait(LOOK_SECONDS):
        pass


def end_soon(status: int) -> int:
    """The exit status of this process. Python would wait for all threads, of which one may wait for
    a Kafka that is gone; those are not waited for."""
    last = threading.Timer(LAST_SECONDS, os._exit, [status])
    last.daemon = True
    last.start()
    return status


def _leave(server: RunningServer) -> None:
    """Stops what is left within a short time, whatever its state."""

    def leave() -> None:
        with suppress(Exception):
            server.stop()

    leaving = threading.Thread(target=leave, daemon=True)
    leaving.start()
    leaving.join(LEAVE_SECONDS)


def _begin_anew(
    reason: str,
    environment: dict[str, str],
    command: Sequence[str] | None,
    asked: threading.Event,
) -> int:
    """Restarts the program in this process; returns a status if it should end instead."""
    now = time.time()
    starts = [at for at in _starts(environment) if now - at < STARTS_WITHIN_SECONDS]
    if command is None or len(starts) >= MOST_STARTS:
        often = f" for the {len(starts) + 1}th time in a short while" if starts else ""
        announce(f"{reason}{often}: the server ends.")
        return UNAVAILABLE
    announce(f"{reason}: the server starts anew")
    if asked.wait(2 ** len(starts) - 1):
        return 0
    environment[STARTS] = ",".join(f"{at:.0f}" for at in [*starts, now])
    return _become(command, environment)


def _become(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Executes another program in this process, with all files closed."""
    for opened in Path("/dev/fd").iterdir():
        with suppress(OSError):
            if int(opened.name) > 2:
                os.set_inheritable(int(opened.name), False)
    os.execve(sys.executable, list(command), environment)


def _starts(environment: Mapping[str, str]) -> list[float]:
    """The times at which this program restarted itself."""
    return [float(at) for at in environment.get(STARTS, "").split(",") if at]
