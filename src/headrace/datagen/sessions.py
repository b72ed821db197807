"""Visitors that stay for a while: the same few values come again until their session is over."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

SECONDS = 30.0
MOST = 5


class Sessions:
    """The sessions that are going on, by the value that stands for them."""

    def __init__(self, random: Random, clock: Callable[[], float]) -> None:
        self._random = random
        self._clock = clock
        self._ends: dict[str, float] = {}
        self._numbers: dict[str, int] = {}

    def visitor(self, value: str) -> str:
        """The value, if it is in a session or may begin one; else one that is."""
        now = self._clock()
        self._ends = {name: end for name, end in self._ends.items() if end > now}
        if value not in self._ends and len(self._ends) >= MOST:
            return self._random.choice(list(self._ends))
        self._ends.setdefault(value, now + SECONDS)
        return value

    def number(self, visitor: str, most: int) -> int:
        """A visitor's number below `most`, always the same, and nobody else's while there are
        enough."""
        if visitor not in self._numbers:
            taken = set(self._numbers.values())
            free = [n for n in range(most) if n not in taken]
            self._numbers[visitor] = self._random.choice(free or range(most))
        return self._numbers[visitor]
