"""An aggregate function as Python steps over a state."""

from __future__ import annotations

from typing import Any, Protocol


class Steps(Protocol):
    """An aggregate function, made for one call.

    States are None, bool, int, float, str, bytes, Decimal, or lists, tuples and dicts of these;
    arguments and results are as `model.representation` says. Steps may change the state they are
    given. An aggregate that cannot take rows back has no `undo`, or None there. Those whose result
    is their state, and no collection, may say so (`shows_state`). Those that want to know the order
    of what they merge have an `arrival`, and a method for the `newest` in a state.
    """

    def initialize(self) -> object: ...

    def add(self, state: Any, /, *args: Any) -> Any: ...

    def merge(self, left: Any, right: Any, /) -> Any: ...

    def result(self, state: Any, /) -> Any: ...
