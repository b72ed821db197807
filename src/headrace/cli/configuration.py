"""What a server is started with: settings of files, the environment and the command line, and what
becomes of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from headrace.model.errors import HeadraceError
from headrace.model.kafka_client_names import CLIENT_NAMES, bare_name, client_name
from headrace.model.setting import Fate
from headrace.model.settings import SETTINGS, canonical, declared, parse, shown

# How alike a name must be to be taken for what was meant.
_ALIKE = 0.75


class Outcome(Enum):
    """What becomes of a setting: by its declaration, or as it has none."""

    HONOURED = Fate.HONOURED.value
    MAPPED = Fate.MAPPED.value
    PASSED_ON = "passed on"
    WITHOUT_MEANING = Fate.WITHOUT_MEANING.value
    UNKNOWN = "unknown"
    REFUSED = Fate.REFUSED.value


@dataclass(frozen=True)
class Finding:
    """What becomes of one setting. `note` is the reason; `warn`: somebody should read it."""

    name: str
    value: str
    outcome: Outcome
    note: str = ""
    warn: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.outcome.value}. {self.note}"


def merged(layers: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Settings of several places, of which the later ones win, by whichever name."""
    chosen: dict[str, str] = {}
    for layer in layers:
        told = {canonical(name) for name in layer}
        kept = {name: value for name, value in chosen.items() if canonical(name) not in told}
        chosen = {**kept, **layer}
    return chosen


def examine(given: Mapping[str, str]) -> list[Finding]:
    """What becomes of each setting, in their order."""
    return [_finding(name, value, given) for name, value in given.items()]


def checked(given: Mapping[str, str], strict: bool) -> tuple[dict[str, str], list[Finding]]:
    """The settings to start with, and what somebody should read about them. Raises for those that
    are refused; if `strict`, for unknown ones too."""
    findings = examine(given)
    wrong = [f for f in findings if f.outcome is Outcome.REFUSED]
    if strict:
        wrong += [f for f in findings if f.outcome is Outcome.UNKNOWN]
    if wrong:
        raise HeadraceError("\n".join(str(finding) for finding in wrong))
    known = {f.name for f in findings if f.outcome is not Outcome.UNKNOWN}
    told = {name: value for name, value in given.items() if name in known}
    return told, [finding for finding in findings if finding.warn]


def _finding(name: str, value: str, given: Mapping[str, str]) -> Finding:
    told = shown(name, value)
    same = _same(name, given)
    if same is not None:
        note = f"{same} says the same with another value: leave one of them out."
        return Finding(name, told, Outcome.REFUSED, note, warn=True)
    setting = declared(name)
    if setting is None:
        return _undeclared(name, told)
    try:
        parsed = parse(name, value)
    except HeadraceError as error:
        note = setting.doc if setting.fate is Fate.REFUSED else error.message
        return Finding(name, told, Outcome.REFUSED, note, warn=True)
    if setting.fate is Fate.MAPPED:
        return Finding(name, told, Outcome.MAPPED, f"Headrace calls it {setting.target}.")
    if setting.fate is Fate.WITHOUT_MEANING and parsed != setting.harmless:
        return Finding(name, told, Outcome.WITHOUT_MEANING, setting.doc, warn=True)
    return Finding(name, told, Outcome.HONOURED)


def _undeclared(name: str, value: str) -> Finding:
    from headrace.kafka.settings import WITHOUT_EFFECT  # the server's, which a client may lack

    if name.startswith("spark."):
        return Finding(name, value, Outcome.PASSED_ON, "Spark gets it.")
    bare = client_name(name)
    if bare is None:
        return Finding(name, value, Outcome.UNKNOWN, _meant(name), warn=True)
    if bare in WITHOUT_EFFECT:
        note = f"Kafka's client has no use for it: {WITHOUT_EFFECT[bare]}."
        return Finding(name, value, Outcome.WITHOUT_MEANING, note, warn=True)
    return Finding(name, value, Outcome.PASSED_ON, "Kafka's clients get it.")


def _meant(name: str) -> str:
    prefix = name.removesuffix(bare_name(name))
    known = [*SETTINGS, *(prefix + each for each in CLIENT_NAMES)]
    near = get_close_matches(name, known, n=1, cutoff=_ALIKE)
    hint = f" Did you mean {near[0]}?" if near else " See docs/settings.md for all that there are."
    return f"It is ignored.{hint}"


def _same(name: str, given: Mapping[str, str]) -> str | None:
    """Another name by which the same is set to something else."""
    target = canonical(name)
    others = (n for n, v in given.items() if n != name and v.strip() != given[name].strip())
    return next((other for other in others if canonical(other) == target), None)
