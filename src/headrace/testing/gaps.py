"""The list of known gaps, checked strictly: each gap must fail, everything else must pass.

```toml
[settings]
"ksql.persistence.wrap.single.values" = "true"

[[gap]]
kind = "notyet"
reason = "why"
cases = ["query/file.json: name of the case"]
```

`settings`: what the cases assume of the server.

`notimpl`: not implemented. `notyet`: implemented in part. `never`: will not be, and the reason
says what is right instead.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.model.errors import HeadraceError
from headrace.testing.cases import Case
from headrace.testing.outcomes import Outcome, Result

KINDS = ("notimpl", "notyet", "never")


@dataclass(frozen=True)
class Gap:
    file: str
    name: str
    kind: str
    reason: str

    def is_about(self, case: Case) -> bool:
        """Files are compared from their end, so that it does not matter where a run begins."""
        return self.name == case.name and _same_file(self.file, case.file)

    @property
    def label(self) -> str:
        return f"{self.file}: {self.name}"


def _same_file(one: str, other: str) -> bool:
    a, b = Path(one).parts, Path(other).parts
    shared = min(len(a), len(b))
    return a[-shared:] == b[-shared:]


def read_gaps(path: Path) -> Gaps:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise HeadraceError(f"{path} cannot be read as TOML: {e}") from None
    gaps: list[Gap] = []
    for entry in data.get("gap", ()):
        kind, reason = entry.get("kind"), str(entry.get("reason", "")).strip()
        if kind not in KINDS or not reason:
            raise HeadraceError(
                f"{path}: each gap needs a kind ({', '.join(KINDS)}) and a reason: {entry}"
            )
        for label in entry.get("cases", ()):
            file, colon, name = label.partition(": ")
            if not colon:
                raise HeadraceError(f"{path}: a case is named 'file: name', not '{label}'")
            gaps.append(Gap(file, name, kind, reason))
    return Gaps(gaps, {name: str(value) for name, value in data.get("settings", {}).items()})


@dataclass(frozen=True)
class Judged:
    """An outcome compared with the gap list."""

    outcome: Outcome
    gap: Gap | None

    @property
    def is_right(self) -> bool:
        match self.outcome.result:
            case Result.FAILED:
                return self.gap is not None
            case Result.PASSED:
                return self.gap is None
        return True

    def as_far_as_planned(self) -> Judged:
        """What fails only when it runs may well be planned."""
        passed = self.outcome.result is Result.PASSED
        return replace(self, gap=None) if passed else self


class Gaps:
    """Finds a case's gap fast, and knows those that no case belongs to. `settings` are what the
    cases assume of the server."""

    def __init__(self, gaps: Iterable[Gap] = (), settings: Mapping[str, str] | None = None) -> None:
        self.settings = dict(settings or {})
        self._by_name: dict[str, list[Gap]] = {}
        for gap in gaps:
            self._by_name.setdefault(gap.name, []).append(gap)

    def of(self, case: Case) -> Gap | None:
        return next((g for g in self._by_name.get(case.name, ()) if g.is_about(case)), None)

    def judge(self, outcome: Outcome) -> Judged:
        return Judged(outcome, self.of(outcome.case))

    def stale(self, cases: Sequence[Case]) -> list[Gap]:
        """Gaps about files that were read, and that hold no such case."""
        files = {case.file for case in cases}
        return [
            gap
            for gaps in self._by_name.values()
            for gap in gaps
            if any(_same_file(gap.file, file) for file in files)
            and not any(gap.is_about(case) for case in cases)
        ]
