"""Runs user-defined functions: scalar and table functions on batches, aggregates as steps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare.declaration import CallContext, Fallible, SparkForm
from headrace.functions.extensions.shipping import Extension, Shipped
from headrace.functions.extensions.values import Convert, held, shown
from headrace.model.representation import spark_type
from headrace.model.types import Array, SqlType

_LOG = logging.getLogger("headrace.functions")


@dataclass(frozen=True)
class Body:
    """A user's scalar or table function, and how it wants to be called.

    `takes_null` says for each parameter whether the function wants to see nulls there; its last
    entry also counts for all further arguments.
    """

    name: str
    function: Callable[..., object]
    takes_null: tuple[bool, ...]
    wants_config: bool
    extension: Extension | None


def settings_of(name: str, settings: Mapping[str, object]) -> dict[str, object]:
    """The settings that are meant for a function, or for all of them."""
    prefixes = f"ksql.functions.{name.lower()}.", "ksql.functions._global_."
    return {key: value for key, value in settings.items() if key.lower().startswith(prefixes)}


def reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


# Batches need pyarrow, which takes long to import: only a query that uses them pays for it.


def scalar_form(body: Body, style: str) -> SparkForm:
    def form(*args: Column, context: CallContext) -> Fallible:
        from headrace.functions.extensions.batches import column_of

        return column_of(body, style, args, context, context.return_type)

    return form


def table_form(body: Body) -> SparkForm:
    def form(*args: Column, context: CallContext) -> Fallible:
        from headrace.functions.extensions.batches import column_of

        rows = Array(context.return_type)
        given = column_of(body, "table", args, context, rows)
        none = F.array().cast(spark_type(rows))
        return Fallible(F.coalesce(given.value, none), given.error)

    return form


class UserSteps(Shipped):
    """A user's aggregate as the steps that kernels take.

    `add` and `undo` may raise: the row is then reported and not counted. A result that is not of
    the declared type is null.
    """

    def __init__(
        self,
        name: str,
        aggregate: Any,
        arg_types: Iterable[SqlType],
        returns: SqlType,
        extension: Extension | None,
    ) -> None:
        self.extension = extension
        self.name = name
        self.aggregate = aggregate
        self.returns = returns
        self.initialize: Callable[[], object] = aggregate.initialize
        self.add: Callable[..., object] = aggregate.add
        self.undo: Callable[..., object] | None = getattr(aggregate, "undo", None)
        converts = tuple(map(shown, arg_types))
        if any(converts):
            self.add = Converting(self.add, converts)
            self.undo = Converting(self.undo, converts) if self.undo else None

    def merge(self, left: object, right: object) -> object:
        try:
            return self.aggregate.merge(left, right)
        except Exception:  # a user's code may raise anything: the query goes on
            _LOG.exception("Function %s could not merge two states; one is lost", self.name)
            return left

    def result(self, state: object) -> object:
        try:
            return held(self.returns, self.aggregate.result(state))
        except Exception:  # a user's code may raise anything: the result is null
            _LOG.exception("Function %s has no valid result", self.name)
            return None


@dataclass(frozen=True)
class Converting:
    """A step that converts its arguments for the user's code."""

    step: Callable[..., object]
    converts: tuple[Convert | None, ...]

    def __call__(self, state: object, *args: object) -> object:
        seen = (a if c is None else c(a) for a, c in zip(args, self.converts, strict=False))
        return self.step(state, *seen)
