"""Runs a server until it is told to stop, and says where it listens."""

from __future__ import annotations

import signal
import sys
import threading

from headrace.server.launch import LaunchOptions, RunningServer


def serve(options: LaunchOptions) -> int:
    """Serves until Ctrl-C or SIGTERM, then stops in order; while it starts, they end the start."""
    stop = StopSignals()
    with RunningServer(options, _tell) as server:
        stop.await_from_now()
        for part, address in server.addresses.items():
            print(f"{part:<10} {address}")
        print("Ready. Ctrl-C stops.", flush=True)
        stop.wait()
        _tell("Stopping")
    return 0


class StopSignals:
    """The signals that mean: finish, and go. Before they are awaited they interrupt at once."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._awaited = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._arrived)

    def _arrived(self, *_: object) -> None:
        if not self._awaited:
            raise KeyboardInterrupt
        self._event.set()

    def await_from_now(self) -> None:
        self._awaited = True

    def wait(self) -> None:
        self._event.wait()


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
