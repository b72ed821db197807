"""Plans as JSON and back, so that a query runs on as it was planned.

Every node, expression, type and column is an object of its fields, with its class's name under
`$`. What JSON has no word for (decimals, bytes, members of enumerations) is an object too.
"""

from __future__ import annotations

import base64
import decimal
import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from types import ModuleType
from typing import Any

from headrace.model import schema, sources, types
from headrace.model.errors import HeadraceError
from headrace.plan import expressions, nodes

Json = Any


class PlanVersionError(HeadraceError):
    """A recorded plan that this version cannot read."""

    error_code = 50000


def to_json(node: nodes.Node) -> Json:
    return {"version": nodes.PLAN_VERSION, "plan": encode(node)}


def from_json(data: Json) -> nodes.Node:
    version = data.get("version")
    if version != nodes.PLAN_VERSION:
        raise PlanVersionError(
            f"This plan was recorded in version {version}, but only version {nodes.PLAN_VERSION} "
            "can be read. Create the query anew."
        )
    node = decode(data["plan"])
    if not isinstance(node, nodes.Node):
        raise PlanVersionError("This is not a recorded plan.")
    return node


def encode(value: object) -> Json:
    match value:
        case None | bool() | str() | int():
            return value
        case Enum():
            return {"$": type(value).__name__, "name": value.name}
        case float():
            return value if math.isfinite(value) else {"$": "float", "text": str(value)}
        case decimal.Decimal():
            return {"$": "decimal", "text": str(value)}
        case bytes():
            return {"$": "bytes", "text": base64.b64encode(value).decode()}
        case tuple() | list():
            return [encode(item) for item in value]
    if is_dataclass(value) and type(value).__name__ in _CLASSES:
        parts = {f.name: encode(getattr(value, f.name)) for f in fields(value)}
        return {"$": type(value).__name__, **parts}
    raise TypeError(f"{type(value).__name__} is no part of a plan")


def decode(data: Json) -> Any:
    match data:
        case list():
            return tuple(decode(item) for item in data)
        case {"$": "float", "text": text}:
            return float(text)
        case {"$": "decimal", "text": text}:
            return decimal.Decimal(text)
        case {"$": "bytes", "text": text}:
            return base64.b64decode(text)
        case {"$": name}:
            class_ = _CLASSES.get(name)
            if class_ is None:
                raise PlanVersionError(f"This plan holds a {name}, which is not known.")
            if issubclass(class_, Enum):
                return class_[data["name"]]
            return class_(**{str(k): decode(v) for k, v in data.items() if k != "$"})
    return data


def _classes(module: ModuleType) -> Iterator[type]:
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield value


_CLASSES: dict[str, type] = {
    class_.__name__: class_
    for module in (types, schema, sources, expressions, nodes)
    for class_ in _classes(module)
}
