"""The position up to which this server has applied the command log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from headrace.catalog.command_log import Command, CommandLog, Entry, Unreadable
from headrace.model.errors import HeadraceError

LOG = logging.getLogger(__name__)


class CommandNotDoneError(HeadraceError):
    """A command was not applied within the time that its sender waits."""

    error_code = 50301


class TerminatedError(HeadraceError):
    """The service was terminated and accepts no more statements."""

    error_code = 50304


class AppliedCommands:
    """The position up to which the command log is applied here, and the lock for applying it.

    Whoever appends a command holds `lock` from planning it until it is applied.
    """

    def __init__(self, log: CommandLog, timeout: float) -> None:
        self.log = log
        self.lock = threading.RLock()
        self.position = 0  # the number of the next command
        self.last = -1  # the last command that counted
        self.terminated = False
        self._changed = threading.Condition(self.lock)
        self._void: set[int] = set()
        self._timeout = timeout

    def receive(self, entry: Entry, apply: Callable[[Command], None]) -> bool:
        """Applies an entry of the log; False if it was applied before, as this server wrote it."""
        with self.lock:
            if entry.sequence < self.position:
                return False
            if isinstance(entry, Unreadable):
                LOG.error(
                    "Record %d of the command log %s is passed over: %s",
                    entry.sequence,
                    self.log.topic,
                    entry.reason,
                )
            try:
                if isinstance(entry, Command):
                    self._take_up(entry, apply)
            finally:
                self.mark_processed(entry.sequence)
            return True

    def _take_up(self, command: Command, apply: Callable[[Command], None]) -> None:
        if command.counts(self.last):
            self.last = command.sequence
            apply(command)
        else:
            self._void.add(command.sequence)

    def mark_processed(self, sequence: int) -> None:
        """Marks the command of this number as processed."""
        self.position = sequence + 1
        self._changed.notify_all()

    def mark_valid(self, sequence: int) -> None:
        """Marks this server's own command of this number as valid, about to be applied."""
        self.last = sequence
        self.mark_processed(sequence)

    def is_void(self, sequence: int) -> bool:
        """Whether another server's command came first and made the one of this number invalid."""
        return sequence in self._void

    def wait_for(self, sequence: int, timeout: float | None = None) -> None:
        """Returns when the command of this number is applied."""
        with self.lock:
            patience = self._timeout if timeout is None else timeout
            if not self._changed.wait_for(lambda: self.position > sequence, patience):
                raise CommandNotDoneError(
                    "Timed out while waiting for a previous command to execute. command sequence "
                    f"number: {sequence}"
                )

    def wait_for_end(self) -> None:
        """Returns when all that stands in the log by now is applied."""
        self.wait_for(self.log.end() - 1)

    def admit(self, sequence: int | None = None, timeout: float | None = None) -> None:
        """Waits for the command of this number; raises if no statement is taken any more."""
        if self.terminated:
            raise TerminatedError("The server is already shut down")
        if sequence is not None:
            self.wait_for(sequence, timeout)
