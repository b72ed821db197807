"""The settings that a statement of ksqlDB was made under, as a Headrace server takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from headrace.importing.recorded import Recorded
from headrace.model.errors import HeadraceError
from headrace.model.kafka_client_names import STREAMS
from headrace.model.settings import SETTINGS, Settings, canonical, check_editable
from headrace.plan.sources.wrapping import WRAP_SETTINGS

RESET = "ksql.streams.auto.offset.reset"
WRAP_VALUES = WRAP_SETTINGS["value"]
# What ksqlDB does where nothing is set: it wraps single values, and never single keys.
_DEFAULTS = {RESET: "latest", WRAP_VALUES: "true", WRAP_SETTINGS["key"]: "false"}


@dataclass(frozen=True)
class MovedSettings:
    """What goes along with the statement, as texts, and what is said of the rest."""

    values: Mapping[str, str]
    notes: tuple[str, ...] = ()


def moved_settings(recorded: Recorded) -> MovedSettings:
    values = _DEFAULTS | dict(_server(recorded.server))
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
    """Of the server's settings, those that statements may be given and that are not ours anyway."""
    for name, value in given.items():
        known = _known(name)
        if known not in SETTINGS or not SETTINGS[known].editable or value in (None, ""):
            continue
        with suppress(HeadraceError):  # what ksqlDB took and we cannot: our default holds
            if known in _DEFAULTS or Settings({known: value})[known] != SETTINGS[known].default:
                yield known, _text(value)


def _known(name: str) -> str:
    """The name that we know the setting by, if we do."""
    own = canonical(name)
    return own if own in SETTINGS else canonical(name.removeprefix(STREAMS))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
