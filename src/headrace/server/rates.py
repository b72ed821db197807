"""Limits over time: so many queries a second, so many bytes an hour."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from headrace.server.error_responses import BAD_REQUEST, TOO_MANY_REQUESTS, ApiError

HOUR = 3600.0
MEGABYTE = 1024 * 1024
Clock = Callable[[], float]


class QueryRate:
    """At most so many pull queries a second; what was not used is kept for a second. Used on the
    event loop only."""

    def __init__(self, per_second: int | None, clock: Clock = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._left = 1.0
        self._at = clock()

    def take(self) -> None:
        if self._per_second is None:
            return
        now = self._clock()
        earned = (now - self._at) * self._per_second
        self._left, self._at = min(self._left + earned, float(self._per_second)), now
        if self._left < 1:
            raise ApiError(
                TOO_MANY_REQUESTS,
                "Host is at rate limit for pull queries. Currently set to "
                f"{float(self._per_second)} qps.",
            )
        self._left -= 1


class Bandwidth:
    """How much the answers to one kind of queries weighed within the last hour. An answer's weight
    is known when it is sent: what is refused is the next query."""

    def __init__(self, kind: str, megabytes: int | None, clock: Clock = time.monotonic) -> None:
        self._kind = kind
        self._most = None if megabytes is None else megabytes * MEGABYTE
        self._clock = clock
        self._lock = threading.Lock()
        self._sent: deque[tuple[float, int]] = deque()
        self._total = 0

    def check(self) -> None:
        if self._most is None:
            return
        with self._lock:
            while self._sent and self._clock() - self._sent[0][0] >= HOUR:
                self._total -= self._sent.popleft()[1]
            if self._total > self._most:
                refusal = f"Host is at bandwidth rate limit for {self._kind} queries."
                raise ApiError(BAD_REQUEST, refusal)

    def add(self, text: str) -> None:
        """Counts a piece of an answer; called on any thread."""
        if self._most is None or not text:
            return
        weight = len(text.encode())
        with self._lock:
            self._sent.append((self._clock(), weight))
            self._total += weight
