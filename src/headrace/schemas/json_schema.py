"""JSON Schemas: validated, and their parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from headrace.schemas.nesting import check_nesting

Keywords = dict[str, Any]
Declaration = Keywords | bool

TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})


def parse(text: str) -> Declaration:
    """Parses a schema; ValueError says why the text is not one."""
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


def _check(declaration: object, path: str) -> None:
    if isinstance(declaration, bool):
        return
    if not isinstance(declaration, dict):
        raise ValueError(f"{path}: a schema is an object or a boolean")
    for name in types(declaration) or ():
        if name not in TYPES:
            raise ValueError(f"{path}/type: there is no type {json.dumps(name)}")
    required = declaration.get("required", [])
    if not isinstance(required, list | bool):
        raise ValueError(f"{path}/required: not an array of names")
    if not isinstance(declaration.get("$ref", ""), str):
        raise ValueError(f"{path}/$ref: not a string")
    for place, part in _parts(declaration):
        _check(part, path + place)


def _parts(declaration: Keywords) -> Iterator[tuple[str, Any]]:
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


def types(declaration: Keywords) -> list[str] | None:
    """The names of the types that it allows; None if it does not say."""
    names = declaration.get("type")
    if names is None:
        return None
    return names if isinstance(names, list) else [names]


def pointed(root: object, pointer: str) -> object:
    """What a JSON pointer leads to; None if there is nothing."""
    for step in filter(None, pointer.split("/")):
        step = step.replace("~1", "/").replace("~0", "~")
        root = root.get(step) if isinstance(root, dict) else None
    return root
