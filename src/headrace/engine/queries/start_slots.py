"""Lets few push queries start at a time: each start plans, compiles and reads its first batch."""

from __future__ import annotations

import os
import threading

# Enough to keep the cores busy while others wait for Kafka.
MOST_STARTING = max(4, os.cpu_count() or 1)


class StartSlots:
    """Bounds how many start at once; who waits is served in the order of the first request.

    Who asked before and does not wait at the moment is passed over, and keeps its place.
    """

    def __init__(self, most: int = MOST_STARTING) -> None:
        self._most = most
        self._starting: set[object] = set()
        self._asked: dict[object, bool] = {}  # in their order, and whether each waits here now
        self._changed = threading.Condition()

    def take(self, query: object, timeout: float) -> bool:
        """Whether it may start now; False too if it leaves while it waits."""
        with self._changed:
            self._asked[query] = True
            self._changed.wait_for(lambda: self._is_next(query) or self._has_left(query), timeout)
            if self._has_left(query):
                return False
            taken = self._is_next(query)
            if taken:
                del self._asked[query]
                self._starting.add(query)
            else:
                self._asked[query] = False
            self._changed.notify_all()
            return taken

    def _is_next(self, query: object) -> bool:
        first = next((asked for asked, waits in self._asked.items() if waits), None)
        return first == query and len(self._starting) < self._most

    def _has_left(self, query: object) -> bool:
        return query not in self._asked

    def has(self, query: object) -> bool:
        return query in self._starting

    def leave(self, query: object) -> None:
        """It has started, or does not want to any more."""
        with self._changed:
            self._starting.discard(query)
            self._asked.pop(query, None)
            self._changed.notify_all()
