"""One broker, one registry and one Spark session, on which cases run their queries."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from headrace.testing.cases import Case
from headrace.testing.outcomes import CaseFailure


class Stage:
    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def run(self, case: Case) -> None:
        raise CaseFailure("queries cannot be run yet")
