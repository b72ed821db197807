"""Delays after failed logins, which prevent trying out passwords."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from headrace.server.error_responses import TOO_MANY_REQUESTS, ApiError

FREE_FAILURES = 5
FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
_REMEMBERED = 10_000


@dataclass
class _Failures:
    count: int = 0
    until: float = 0.0  # not tried again before


class FailedLogins:
    """Failed logins by client address and user name, so that nobody can lock out another address.

    Used on the event loop only. Whoever is logged in already is not concerned.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[tuple[str, str], _Failures] = OrderedDict()

    def check(self, address: str, name: str) -> None:
        """Raises while this client has to wait."""
        failures = self._failures.get((address, name))
        left = failures.until - self._clock() if failures is not None else 0.0
        if left > 0:
            raise ApiError(
                TOO_MANY_REQUESTS,
                f"Too many failed logins of this user. Try again in {int(left) + 1} s.",
            )

    def note(self, address: str, name: str) -> None:
        """Records a failed login; the delay doubles with each after the first few."""
        failures = self._failures.setdefault((address, name), _Failures())
        self._failures.move_to_end((address, name))
        failures.count += 1
        extra = failures.count - FREE_FAILURES
        if extra >= 0:
            seconds = min(FIRST_SECONDS * 2.0 ** min(extra, 10), LONGEST_SECONDS)
            failures.until = self._clock() + seconds
        if len(self._failures) > _REMEMBERED:
            self._failures.popitem(last=False)

    def forget(self, address: str, name: str) -> None:
        self._failures.pop((address, name), None)
