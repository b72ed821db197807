"""JSON Schemas: whether a text is one, and whether one accepts all that another describes.

The comparison follows the registry's rules for the keywords that describe data's shape (types,
enumerations, properties, items, alternatives, bounds). Keywords it does not know do not count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from headrace.topics.registry.nesting import check_nesting
from headrace.topics.registry.obstacle import Obstacle

Declaration = dict[str, Any] | bool

TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
# Keywords that bound values: whether a larger value lets more through.
BOUNDS = {
    "maximum": True,
    "exclusiveMaximum": True,
    "maxLength": True,
    "maxItems": True,
    "maxProperties": True,
    "minimum": False,
    "exclusiveMinimum": False,
    "minLength": False,
    "minItems": False,
    "minProperties": False,
}


def parse(text: str) -> Declaration:
    """The schema; ValueError says why the text is none."""
    try:
        declaration = json.loads(text)
        check_nesting(declaration)
    except RecursionError as failure:
        raise ValueError("nested too deeply") from failure
    try:
        _check(declaration, "#")
    except RecursionError as failure:
        raise ValueError("nested too deeply") from failure
    checked: Declaration = declaration
    return checked


def _check(declaration: Any, path: str) -> None:
    if isinstance(declaration, bool):
        return
    if not isinstance(declaration, dict):
        raise ValueError(f"{path}: a schema is an object or a boolean")
    for name in _types(declaration) or ():
        if name not in TYPES:
            raise ValueError(f"{path}/type: there is no type {json.dumps(name)}")
    required = declaration.get("required", [])
    if not isinstance(required, list | bool):
        raise ValueError(f"{path}/required: not an array of names")
    if not isinstance(declaration.get("$ref", ""), str):
        raise ValueError(f"{path}/$ref: not a string")
    for place, part in _parts(declaration):
        _check(part, path + place)


def _parts(declaration: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas directly inside a schema."""
    for keyword in ("properties", "patternProperties", "definitions", "$defs"):
        parts = declaration.get(keyword, {})
        if not isinstance(parts, dict):
            raise ValueError(f"{keyword}: not an object")
        yield from ((f"/{keyword}/{name}", part) for name, part in parts.items())
    for keyword in ("oneOf", "anyOf", "allOf"):
        parts = declaration.get(keyword, [])
        if not isinstance(parts, list):
            raise ValueError(f"{keyword}: not an array")
        yield from ((f"/{keyword}/{number}", part) for number, part in enumerate(parts))
    for keyword in ("additionalProperties", "not"):
        if keyword in declaration:
            yield f"/{keyword}", declaration[keyword]
    items = declaration.get("items", True)
    if isinstance(items, list):
        yield from ((f"/items/{number}", part) for number, part in enumerate(items))
    else:
        yield "/items", items


def obstacles(reader: Declaration, writer: Declaration) -> list[Obstacle]:
    """Why `reader` does not accept everything that `writer` describes; nothing if it does."""
    return _Comparison(reader, writer).compare(reader, writer, "#")


class _Comparison:
    def __init__(self, reader: Declaration, writer: Declaration) -> None:
        self._reader = reader
        self._writer = writer
        self._met: set[tuple[int, int]] = set()

    def compare(self, reader: Declaration, writer: Declaration, path: str) -> list[Obstacle]:
        reader, writer = _resolve(reader, self._reader), _resolve(writer, self._writer)
        pair = (id(reader), id(writer))
        # Pairs under way count as fitting, so that recursive schemas come to an end.
        if pair in self._met or reader == writer or reader is True or writer is False:
            return []
        if reader is False:
            return [Obstacle("TYPE_NARROWED", path)]
        self._met.add(pair)
        try:
            return self._compare(reader, {} if writer is True else writer, path)
        finally:
            self._met.discard(pair)

    def _compare(self, reader: dict[str, Any], writer: dict[str, Any], path: str) -> list[Obstacle]:
        offered, asked = _alternatives(writer), _alternatives(reader)
        if offered is not None or asked is not None:
            return self._alternatives(asked or [reader], offered or [writer], path)
        return [
            *_types_narrowed(reader, writer, path),
            *_values_narrowed(reader, writer, path),
            *_bounds_narrowed(reader, writer, path),
            *self._properties(reader, writer, path),
            *self._items(reader, writer, path),
        ]

    def _alternatives(
        self, asked: list[Declaration], offered: list[Declaration], path: str
    ) -> list[Obstacle]:
        for alternative in offered:
            if all(self.compare(one, alternative, path) for one in asked):
                return [Obstacle("SUM_TYPE_NARROWED", path)]
        return []

    def _properties(
        self, reader: dict[str, Any], writer: dict[str, Any], path: str
    ) -> list[Obstacle]:
        found: list[Obstacle] = []
        mine, theirs = reader.get("properties", {}), writer.get("properties", {})
        more, less = (
            reader.get("additionalProperties", True),
            writer.get("additionalProperties", True),
        )
        if more is False and less is not False and _may_be(writer, "object"):
            found.append(Obstacle("ADDITIONAL_PROPERTIES_REMOVED", path))
        elif more is not False and less is not False:
            found += self.compare(more, less, f"{path}/additionalProperties")
        for name, part in mine.items():
            place = f"{path}/properties/{name}"
            if name in theirs:
                found += self.compare(part, theirs[name], place)
            elif less is True and part is not True and part != {}:
                found.append(Obstacle("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", place))
            elif less is not False:
                found += self.compare(part, less, place)
        for name, part in theirs.items():
            place = f"{path}/properties/{name}"
            if name not in mine and more is False:
                found.append(Obstacle("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", place))
            elif name not in mine:
                found += self.compare(more, part, place)
        needed = set(_required(reader)) - set(_required(writer))
        for name in sorted(needed):
            part = mine.get(name, True)
            if not (isinstance(part, dict) and "default" in part):
                found.append(Obstacle("REQUIRED_ATTRIBUTE_ADDED", f"{path}/required/{name}"))
        return found

    def _items(self, reader: dict[str, Any], writer: dict[str, Any], path: str) -> list[Obstacle]:
        mine, theirs = reader.get("items", True), writer.get("items", True)
        if isinstance(mine, list) or isinstance(theirs, list):
            return [] if mine == theirs else [Obstacle("TYPE_CHANGED", f"{path}/items")]
        return self.compare(mine, theirs, f"{path}/items")


def _resolve(declaration: Declaration, root: Declaration) -> Declaration:
    """Follows `$ref`s within the same schema; those that lead elsewhere stay as they are."""
    for _ in range(100):
        if not isinstance(declaration, dict) or not str(declaration.get("$ref", "")).startswith(
            "#"
        ):
            return declaration
        target: Any = root
        for step in declaration["$ref"].lstrip("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            target = target.get(step) if isinstance(target, dict) else None
        if not isinstance(target, dict | bool):
            return declaration
        declaration = target
    return declaration


def _types(declaration: dict[str, Any]) -> list[str] | None:
    names = declaration.get("type")
    if names is None:
        return None
    return names if isinstance(names, list) else [names]


def _may_be(declaration: dict[str, Any], name: str) -> bool:
    names = _types(declaration)
    return names is None or name in names


def _required(declaration: dict[str, Any]) -> list[str]:
    required = declaration.get("required", [])
    return [name for name in required if isinstance(name, str)] if required else []


def _alternatives(declaration: dict[str, Any]) -> list[Declaration] | None:
    for keyword in ("oneOf", "anyOf"):
        if declaration.get(keyword):
            alternatives: list[Declaration] = declaration[keyword]
            return alternatives
    return None


def _types_narrowed(reader: dict[str, Any], writer: dict[str, Any], path: str) -> list[Obstacle]:
    mine, theirs = _types(reader), _types(writer)
    if mine is None:
        return []
    accepted = {*mine, *(["integer"] if "number" in mine else [])}
    if theirs is None and "enum" in writer:
        return []
    if theirs is None or not set(theirs) & accepted:
        return [Obstacle("TYPE_CHANGED", path)]
    return [] if set(theirs) <= accepted else [Obstacle("TYPE_NARROWED", path)]


def _values(declaration: dict[str, Any]) -> list[str] | None:
    values = [declaration["const"]] if "const" in declaration else declaration.get("enum")
    return None if values is None else [json.dumps(value, sort_keys=True) for value in values]


def _values_narrowed(reader: dict[str, Any], writer: dict[str, Any], path: str) -> list[Obstacle]:
    mine, theirs = _values(reader), _values(writer)
    if mine is None or (theirs is not None and set(theirs) <= set(mine)):
        return []
    return [Obstacle("ENUM_ARRAY_NARROWED", f"{path}/enum")]


def _bounds_narrowed(reader: dict[str, Any], writer: dict[str, Any], path: str) -> list[Obstacle]:
    found = []
    for keyword, larger_is_wider in BOUNDS.items():
        mine, theirs = reader.get(keyword), writer.get(keyword)
        if not isinstance(mine, int | float):
            continue
        if not isinstance(theirs, int | float):
            fits = False
        else:
            fits = mine >= theirs if larger_is_wider else mine <= theirs
        if not fits:
            kind = "ADDED" if theirs is None else "DECREASED" if larger_is_wider else "INCREASED"
            found.append(Obstacle(f"{_upper(keyword)}_{kind}", f"{path}/{keyword}"))
    if "pattern" in reader and reader["pattern"] != writer.get("pattern"):
        found.append(Obstacle("PATTERN_CHANGED", f"{path}/pattern"))
    return found


def _upper(keyword: str) -> str:
    """minLength → MIN_LENGTH"""
    return "".join(f"_{c}" if c.isupper() else c.upper() for c in keyword)
