"""Which entries come due when stream time reaches a point."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K")


class Expiry(Generic[K]):
    """Keys by the time at which they are due. Many keys share few times, so times are heaped."""

    __slots__ = ("_keys", "_times")

    def __init__(self) -> None:
        self._times: list[int] = []
        self._keys: dict[int, list[K]] = {}

    def add(self, time: int, key: K) -> None:
        keys = self._keys.get(time)
        if keys is None:
            self._keys[time] = [key]
            heapq.heappush(self._times, time)
        else:
            keys.append(key)

    def first(self) -> int | None:
        """The earliest time at which something is due."""
        return self._times[0] if self._times else None

    def due(self, now: int) -> Iterator[tuple[int, list[K]]]:
        """Takes out what is due at or before `now`: earliest first, then in the order added."""
        while self._times and self._times[0] <= now:
            time = heapq.heappop(self._times)
            yield time, self._keys.pop(time)


def in_key_order(places: list[K], by: Callable[[K], Any] | None = None) -> list[K]:
    """Kafka Streams lets go of what is due at one time in the order of the keys."""
    try:
        return sorted(places, key=by)  # type: ignore[type-var, arg-type]
    except TypeError:  # keys with nulls have no order: as they came
        return places
