"""What a server does besides its own requests: it hears what other servers are told, and takes the
queries on or lets them go as the lease says."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from headrace.catalog.commands import CommandLog, Entry
from headrace.model.errors import HeadraceError

LOG = logging.getLogger(__name__)

SETTLE_SECONDS = 0.25
RETRY_SECONDS = 1.0


class Following:
    """Two threads: a command that takes long must not keep the queries from being let go."""

    def __init__(
        self,
        log: CommandLog,
        hear: Callable[[Entry], None],
        settle: Callable[[], str | None],
        is_over: Callable[[], bool],
    ) -> None:
        self._log = log
        self._hear = hear
        self._settle = settle
        self._is_over = is_over
        self._stopping = threading.Event()
        self._position = 0
        self._commands = threading.Thread(target=self._follow, name="command-log", daemon=True)
        self._role = threading.Thread(target=self._keep_role, name="lease", daemon=True)

    def open(self, position: int) -> None:
        """Hears commands from this position on."""
        self._position = position
        self._commands.start()

    def keep_role(self) -> None:
        self._role.start()

    @property
    def is_alive(self) -> bool:
        return self._commands.is_alive()

    def close(self) -> None:
        self._stopping.set()
        for thread in (self._commands, self._role):
            if thread.is_alive():
                thread.join()

    def _follow(self) -> None:
        while not self._stopping.is_set() and not self._is_over():
            try:
                for entry in self._log.follow(self._position, self._stopping):
                    self._position = entry.sequence + 1
                    self._hear(entry)
            except HeadraceError as e:
                if not self._is_over():
                    LOG.warning("The command log cannot be followed for now: %s", e)
            except Exception:
                LOG.exception("A command of another server could not be applied")
            self._stopping.wait(RETRY_SECONDS)

    def _keep_role(self) -> None:
        while not self._stopping.wait(SETTLE_SECONDS):
            try:
                done = self._settle()
                if done is not None:
                    LOG.warning(done)
            except HeadraceError as e:
                LOG.warning("The queries cannot be taken on for now: %s", e)
            except Exception:
                LOG.exception("The queries could not be taken on or let go; it is tried again")
