"""When a push query tries again that cannot go on, because something that it needs is away."""

from __future__ import annotations

FIRST_PAUSE = 0.5
MOST_PAUSE = 10.0


class Retries:
    """The attempts of one query: pauses that double, and the end of all patience."""

    def __init__(self, patience: float, first_pause: float = FIRST_PAUSE) -> None:
        self.patience = patience
        self._first = self._pause = first_pause
        self._since: float | None = None
        self._due = 0.0

    def failed(self, now: float) -> bool:
        """Whether to try again after this failure: the query has not gone on for less than its
        patience."""
        if self._since is None:
            self._since, self._pause = now, self._first
        else:
            self._pause = min(2 * self._pause, MOST_PAUSE)
        self._due = now + self._pause
        return now - self._since < self.patience

    def went_on(self) -> None:
        """What failed before is forgotten."""
        self._since = None

    def pause(self, now: float) -> float:
        """The seconds until the next attempt; none if it may be made now."""
        return max(0.0, self._due - now)
