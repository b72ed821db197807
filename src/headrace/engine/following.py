"""What a server does besides its own requests: it hears what other servers are told, and takes the
queries on or lets them go as the lease says."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headrace.catalog.commands import CommandLog, Entry
from headrace.engine.supervised import SupervisedThread
from headrace.model.errors import HeadraceError

LOG = logging.getLogger(__name__)

SETTLE_SECONDS = 0.25
# What others were told, and who runs the queries, is worth asking for often.
MOST_BACKOFF = 2.0


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
        self._position = 0
        self.commands = SupervisedThread("command-log", self._follow, most=MOST_BACKOFF)
        self.role = SupervisedThread("lease", self._keep_role, most=MOST_BACKOFF)

    def open(self, position: int) -> None:
        """Hears commands from this position on."""
        self._position = position
        self.commands.start()

    def keep_role(self) -> None:
        self.role.start()

    @property
    def is_alive(self) -> bool:
        return self.commands.is_alive

    def close(self) -> None:
        for thread in (self.commands, self.role):
            thread.stopping.set()
        for thread in (self.commands, self.role):
            thread.stop()

    def _follow(self) -> None:
        try:
            for entry in self._log.follow(self._position, self.commands.stopping):
                self._position = entry.sequence + 1
                self._hear(entry)
        except HeadraceError:
            if not self._is_over():
                raise

    def _keep_role(self) -> None:
        while not self.role.stopping.wait(SETTLE_SECONDS):
            done = self._settle()
            if done is not None:
                LOG.warning(done)
