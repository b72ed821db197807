"""The settings that a statement of ksqlDB was made under, as a Headrace server takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.importing.recorded import Recorded
from headrace.model.errors import HeadraceError
from headrace.model.settings import SETTINGS, Settings, canonical, check_editable

RESET = "ksql.streams.auto.offset.reset"
WRAP_VALUES = "ksql.persistence.wrap.single.values"
WRAP_KEYS = "ksql.persistence.wrap.single.keys"

# Of ksqlDB's server settings, those that change what a statement means, and ksqlDB's defaults
# where they are not ours: it wraps single values, and never single keys.
_MEANING: Mapping[str, str | None] = {
    RESET: "latest",
    WRAP_VALUES: "true",
    WRAP_KEYS: "false",
    "processing.guarantee": None,
    "ksql.streams.cache.max.bytes.buffering": None,
    "ksql.persistence.default.format.key": None,
    "ksql.persistence.default.format.value": None,
    "ksql.output.topic.name.prefix": None,
    "ksql.cast.strings.preserve.nulls": None,
    "ksql.functions.collect_list.limit": None,
    "ksql.functions.collect_set.limit": None,
}
_STREAMS = "ksql.streams."


@dataclass(frozen=True)
class MovedSettings:
    """What goes along with the statement, as texts, and what is said of the rest."""

    values: Mapping[str, str]
    notes: tuple[str, ...] = ()


def moved_settings(recorded: Recorded) -> MovedSettings:
    values = {name: default for name, default in _MEANING.items() if default is not None}
    values |= dict(_server(recorded.server))
    notes: list[str] = []
    for name, value in recorded.session.items():
        if value is None:
            continue
        known = _known(name)
        try:
            check_editable(known)
            Settings({known: value})
        except HeadraceError as error:
            notes.append(f"{name}: {error}")
        else:
            values[known] = _text(value)
    return MovedSettings(values, tuple(notes))


def _server(given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        known = _known(name)
        if known not in _MEANING or value in (None, ""):
            continue
        try:
            parsed = Settings({known: value})[known]
        except HeadraceError:  # what ksqlDB took and we cannot: its default, and ours, holds
            continue
        if _MEANING[known] is not None or parsed != SETTINGS[known].default:
            yield known, _text(value)


def _known(name: str) -> str:
    """The name that we know the setting by, if we do."""
    own = canonical(name)
    return own if own in SETTINGS else canonical(name.removeprefix(_STREAMS))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
