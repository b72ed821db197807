"""Wrapping of single fields (KLIP-3): decided by statement, source and settings.

CREATE captures the setting in force, or what its WITH clause says; C*AS inherits it from its left
source; INSERT uses the sink's; a statement that replaces a source keeps what the source has. A
source of many fields keeps it for what comes downstream. The released name WRAP_SINGLE_VALUE is for
single fields only, and is not inherited.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.formats import format_named
from headrace.formats.base import Feature, Format, Side
from headrace.model.errors import StatementError
from headrace.model.settings import is_on
from headrace.model.sources import Serde, Source
from headrace.plan.sources.properties import WRAPPING, WithClause
from headrace.plan.sources.serdes import SIDES, NamedFormat

WRAP_SETTINGS: Mapping[Side, str] = {
    "key": "ksql.persistence.wrap.single.keys",
    "value": "ksql.persistence.wrap.single.values",
}
# The properties for one side alone, by the names that are inherited.
WRAP_PROPERTIES: Mapping[Side, str] = {"key": "WRAP_SINGLE_KEYS", "value": "WRAP_SINGLE_VALUES"}
_BOTH = "WRAP_SINGLE_FIELDS"
_RELEASED = "WRAP_SINGLE_VALUE"


def wrap_setting(settings: Mapping[str, str], side: Side) -> bool:
    return is_on(settings, WRAP_SETTINGS[side])


def wrap_property(clause: WithClause, side: Side) -> bool | None:
    """What the WITH clause says of a side."""
    name = _given(clause, side)
    return None if name is None else clause.flag(name)


def serde_of(
    named: NamedFormat,
    clause: WithClause,
    side: Side,
    columns: int,
    settings: Mapping[str, str],
    *,
    replaced: Source | None,
    left: Source | None = None,
) -> Serde:
    """A side as the statement has it written: single fields as its WITH clause says, else as the
    source that it replaces has them, else the left source of its query, else the settings."""
    name = _given(clause, side)
    if name == _RELEASED:
        _check_released(clause, named.format, columns)
    inherited = name != _RELEASED
    upstream = left.side(side)[0] if left is not None else None
    if name is not None:
        wrap = clause.flag(name)
    elif replaced is not None:
        recorded, _ = replaced.side(side)
        wrap, inherited = recorded.wrap, recorded.wrap_inherited
    elif upstream is not None and upstream.wrap_inherited and upstream.wrap is not None:
        wrap = upstream.wrap
    else:
        wrap = wrap_setting(settings, side)
    properties = tuple(sorted(named.properties.items()))
    return Serde(named.name, wrap, properties, wrap_inherited=inherited)


def is_wrapped(serde: Serde, columns: int) -> bool:
    """Whether this many columns are wrapped."""
    return format_named(serde.format).wrapped(columns, serde.wrap)


def without_effect(clause: WithClause, source: Source) -> tuple[str, ...]:
    """What to warn of: properties for single fields that a side's format cannot follow. They say
    something only to the queries that inherit them."""
    return tuple(
        _no_effect(name, bool(clause.flag(name)), side, source)
        for side in SIDES
        if (name := _given(clause, side)) is not None
        and name != _RELEASED
        and (source.side(side)[1] or name != _BOTH)
        and not _can(format_named(source.side(side)[0].format), clause.flag(name))
    )


def _no_effect(name: str, flag: bool, side: Side, source: Source) -> str:
    format_ = source.side(side)[0].format
    why = "has no outer record" if flag else "cannot write bare values"
    return (
        f"'{name}' set to '{str(flag).lower()}' has no effect on the {side}s of {source.name}: "
        f"format {format_} {why}. Queries that read {source.name} inherit it."
    )


def _check_released(clause: WithClause, format_: Format, columns: int) -> None:
    """Refuses what the format cannot honour; to state what it does anyway is fine."""
    flag = clause.flag(_RELEASED)
    if not columns:
        return
    if not _can(format_, flag):
        raise StatementError(
            f"Format '{format_.name}' does not support '{_RELEASED}' set to '{str(flag).lower()}'."
        )
    if columns != 1:
        raise StatementError(f"'{_RELEASED}' is only valid for single-field value schemas")


def _can(format_: Format, wrap: bool | None) -> bool:
    return format_.supports(Feature.WRAP if wrap else Feature.UNWRAP)


def _given(clause: WithClause, side: Side) -> str | None:
    return next((name for name in WRAPPING[side] if clause.flag(name) is not None), None)
