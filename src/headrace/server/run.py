"""Runs a server in the foreground until it is asked to stop."""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from headrace.model.secrets import without_login
from headrace.server.launch import LaunchOptions, RunningServer


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def serve(options: LaunchOptions, then: Callable[[RunningServer], int] | None = None) -> int:
    """Starts, tells where it listens, and serves until Ctrl-C or SIGTERM.

    `then` is something to do once the server is up; a result other than 0 ends it at once.
    """
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    stop = threading.Event()

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask_to_stop)
    began = time.monotonic()
    with RunningServer(options, tell) as server:
        # What is there now will stay. To look through it again and again, which is what the garbage
        # collector does, takes a tenth of a second each time, in which nothing else runs.
        gc.collect()
        gc.freeze()
        tell(f"Headrace is ready after {time.monotonic() - began:.1f} s")
        for name, address in server.addresses.items():
            tell(f"  {name:<9} {without_login(address)}")
        if then is not None:
            code = then(server)
            if code or stop.is_set():
                return code
        tell("Ctrl-C stops it.")
        stop.wait()
        tell("Stopping: running micro-batches finish")
    return 0
