"""Compatibility of JSON Schemas.

The comparison follows the registry's rules for the keywords that describe data's shape (types,
enumerations, properties, items, alternatives, bounds). Keywords it does not know do not count.
"""

from __future__ import annotations

import json

from headrace.registry.compatibility.incompatibility import Incompatibility
from headrace.schemas import json_schema
from headrace.schemas.json_schema import Declaration, Keywords

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


def incompatibilities(reader: Declaration, writer: Declaration) -> list[Incompatibility]:
    """Why `reader` does not accept everything that `writer` describes; nothing if it does."""
    return _Comparison(reader, writer).compare(reader, writer, "#")


class _Comparison:
    def __init__(self, reader: Declaration, writer: Declaration) -> None:
        self._reader = reader
        self._writer = writer
        self._met: set[tuple[int, int]] = set()

    def compare(self, reader: Declaration, writer: Declaration, path: str) -> list[Incompatibility]:
        reader, writer = _resolve(reader, self._reader), _resolve(writer, self._writer)
        pair = (id(reader), id(writer))
        # Pairs under way count as fitting, so that recursive schemas come to an end.
        if pair in self._met or reader == writer or reader is True or writer is False:
            return []
        if reader is False:
            return [Incompatibility("TYPE_NARROWED", path)]
        self._met.add(pair)
        try:
            return self._compare(reader, {} if writer is True else writer, path)
        finally:
            self._met.discard(pair)

    def _compare(self, reader: Keywords, writer: Keywords, path: str) -> list[Incompatibility]:
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
    ) -> list[Incompatibility]:
        for alternative in offered:
            if all(self.compare(one, alternative, path) for one in asked):
                return [Incompatibility("SUM_TYPE_NARROWED", path)]
        return []

    def _properties(self, reader: Keywords, writer: Keywords, path: str) -> list[Incompatibility]:
        found: list[Incompatibility] = []
        mine, theirs = reader.get("properties", {}), writer.get("properties", {})
        more, less = (
            reader.get("additionalProperties", True),
            writer.get("additionalProperties", True),
        )
        if more is False and less is not False and _may_be(writer, "object"):
            found.append(Incompatibility("ADDITIONAL_PROPERTIES_REMOVED", path))
        elif more is not False and less is not False:
            found += self.compare(more, less, f"{path}/additionalProperties")
        for name, part in mine.items():
            place = f"{path}/properties/{name}"
            if name in theirs:
                found += self.compare(part, theirs[name], place)
            elif less is True and part is not True and part != {}:
                found.append(Incompatibility("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", place))
            elif less is not False:
                found += self.compare(part, less, place)
        for name, part in theirs.items():
            place = f"{path}/properties/{name}"
            if name not in mine and more is False:
                found.append(Incompatibility("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", place))
            elif name not in mine:
                found += self.compare(more, part, place)
        needed = set(_required(reader)) - set(_required(writer))
        for name in sorted(needed):
            part = mine.get(name, True)
            if not (isinstance(part, dict) and "default" in part):
                found.append(Incompatibility("REQUIRED_ATTRIBUTE_ADDED", f"{path}/required/{name}"))
        return found

    def _items(self, reader: Keywords, writer: Keywords, path: str) -> list[Incompatibility]:
        mine, theirs = reader.get("items", True), writer.get("items", True)
        if isinstance(mine, list) or isinstance(theirs, list):
            return [] if mine == theirs else [Incompatibility("TYPE_CHANGED", f"{path}/items")]
        return self.compare(mine, theirs, f"{path}/items")


def _resolve(declaration: Declaration, root: Declaration) -> Declaration:
    """Follows `$ref`s within the same schema; those that lead elsewhere stay as they are."""
    for _ in range(100):
        if not isinstance(declaration, dict) or not str(declaration.get("$ref", "")).startswith(
            "#"
        ):
            return declaration
        target = json_schema.pointed(root, declaration["$ref"][1:])
        if not isinstance(target, dict | bool):
            return declaration
        declaration = target
    return declaration


def _may_be(declaration: Keywords, name: str) -> bool:
    names = json_schema.types(declaration)
    return names is None or name in names


def _required(declaration: Keywords) -> list[str]:
    required = declaration.get("required", [])
    return [name for name in required if isinstance(name, str)] if required else []


def _alternatives(declaration: Keywords) -> list[Declaration] | None:
    for keyword in ("oneOf", "anyOf"):
        if declaration.get(keyword):
            alternatives: list[Declaration] = declaration[keyword]
            return alternatives
    return None


def _types_narrowed(reader: Keywords, writer: Keywords, path: str) -> list[Incompatibility]:
    mine, theirs = json_schema.types(reader), json_schema.types(writer)
    if mine is None:
        return []
    accepted = {*mine, *(["integer"] if "number" in mine else [])}
    if theirs is None and "enum" in writer:
        return []
    if theirs is None or not set(theirs) & accepted:
        return [Incompatibility("TYPE_CHANGED", path)]
    return [] if set(theirs) <= accepted else [Incompatibility("TYPE_NARROWED", path)]


def _values(declaration: Keywords) -> list[str] | None:
    values = [declaration["const"]] if "const" in declaration else declaration.get("enum")
    return None if values is None else [json.dumps(value, sort_keys=True) for value in values]


def _values_narrowed(reader: Keywords, writer: Keywords, path: str) -> list[Incompatibility]:
    mine, theirs = _values(reader), _values(writer)
    if mine is None or (theirs is not None and set(theirs) <= set(mine)):
        return []
    return [Incompatibility("ENUM_ARRAY_NARROWED", f"{path}/enum")]


def _bounds_narrowed(reader: Keywords, writer: Keywords, path: str) -> list[Incompatibility]:
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
            found.append(Incompatibility(f"{_upper(keyword)}_{kind}", f"{path}/{keyword}"))
    if "pattern" in reader and reader["pattern"] != writer.get("pattern"):
        found.append(Incompatibility("PATTERN_CHANGED", f"{path}/pattern"))
    return found


def _upper(keyword: str) -> str:
    """minLength → MIN_LENGTH"""
    return "".join(f"_{c}" if c.isupper() else c.upper() for c in keyword)
