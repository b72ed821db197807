"""How many records this server has read, written and could not read, by topic, and how fast."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

# Rates are those of the last so many seconds, as in ksqlDB.
WINDOW_SECONDS = 100.0


@dataclass
class Counter:
    """Events of one kind, with the time of the last one in milliseconds; 0 if there was none."""

    total: int = 0
    last_ms: int = 0
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, count: int, now: float) -> None:
        self.total += count
        self.last_ms = int(now * 1000)
        self._recent.append((now, count))
        self._forget(now)

    def rate(self, now: float) -> float:
        """Events a second."""
        self._forget(now)
        return sum(count for _, count in self._recent) / WINDOW_SECONDS

    def _forget(self, now: float) -> None:
        while self._recent and self._recent[0][0] <= now - WINDOW_SECONDS:
            self._recent.popleft()


@dataclass(frozen=True)
class Statistic:
    """A figure under ksqlDB's name for it, and when the last event was, in milliseconds."""

    name: str
    value: float
    timestamp: int


# ksqlDB's names of a kind's rate and total.
_PRODUCED = ("messages-per-sec", "total-messages")
_CONSUMED = ("consumer-messages-per-sec", "consumer-total-messages")
_FAILED = ("consumer-failed-messages-per-sec", "consumer-failed-messages")


class TopicStatistics:
    """Counts since the server started; safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counters: dict[tuple[str, tuple[str, str]], Counter] = {}

    def produced(self, topic: str, count: int) -> None:
        self._add(topic, _PRODUCED, count)

    def consumed(self, topic: str, count: int) -> None:
        self._add(topic, _CONSUMED, count)

    def failed(self, topic: str, count: int) -> None:
        self._add(topic, _FAILED, count)

    def of(self, topic: str) -> tuple[Statistic, ...]:
        """The figures of a topic, of what has happened there."""
        return (*self._read(topic, _PRODUCED), *self._read(topic, _CONSUMED))

    def failures_of(self, topic: str) -> tuple[Statistic, ...]:
        return tuple(self._read(topic, _FAILED))

    def _add(self, topic: str, kind: tuple[str, str], count: int) -> None:
        if count > 0:
            with self._lock:
                self._counters.setdefault((topic, kind), Counter()).add(count, self._clock())

    def _read(self, topic: str, kind: tuple[str, str]) -> list[Statistic]:
        with self._lock:
            counter = self._counters.get((topic, kind))
            if counter is None:
                return []
            rate = counter.rate(self._clock())
            figures = zip(kind, (rate, float(counter.total)), strict=True)
            return [Statistic(name, value, counter.last_ms) for name, value in figures]
