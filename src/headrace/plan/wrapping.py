"""Single fields, bare or in an envelope (KLIP-3): what statement, source and settings say.

CREATE captures the setting in force, or what its WITH clause says; C*AS inherits it from its left
source; INSERT uses the sink's. A source of many fields keeps it for what comes downstream. The
released name WRAP_SINGLE_VALUE is for single fields only, and is not inherited.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.formats import format_named
from headrace.formats.base import Feature, Side
from headrace.model.errors import StatementError
from headrace.model.sources import Serde
from headrace.plan.properties import WRAPPING, WithClause

_SETTINGS = {
    "key": "ksql.persistence.wrap.single.keys",
    "value": "ksql.persistence.wrap.single.values",
}
_RELEASED = "WRAP_SINGLE_VALUE"


def wrap_setting(settings: Mapping[str, str], side: Side) -> bool:
    return settings.get(_SETTINGS[side], "false").lower() == "true"


def wrap_property(clause: WithClause, side: Side) -> bool | None:
    """What the WITH clause says of a side."""
    name = _given(clause, side)
    return None if name is None else clause.flag(name)


def wrap_inherited(clause: WithClause, side: Side) -> bool:
    """Whether queries downstream take over how this side is written."""
    return _given(clause, side) != _RELEASED


def wrap_of_sink(clause: WithClause, side: Side, settings: Mapping[str, str], left: Serde) -> bool:
    """How a sink's single fields are written: as the statement, its left source, or the settings
    say."""
    explicit = wrap_property(clause, side)
    if explicit is not None:
        return explicit
    if left.wrap_inherited and left.wrap is not None:
        return left.wrap
    return wrap_setting(settings, side)


def check_wrap(clause: WithClause, side: Side, format_: str, columns: int) -> None:
    """Refuses a property that the format cannot honour; to state what it does anyway is fine."""
    name = _given(clause, side)
    if name is None or not columns:
        return
    flag = clause.flag(name)
    if not format_named(format_).supports(Feature.WRAP if flag else Feature.UNWRAP):
        raise StatementError(
            f"Format '{format_}' does not support '{name}' set to '{str(flag).lower()}'."
        )
    if name == _RELEASED and columns != 1:
        raise StatementError(f"'{name}' is only valid for single-field value schemas")


def _given(clause: WithClause, side: Side) -> str | None:
    return next((name for name in WRAPPING[side] if clause.flag(name) is not None), None)
