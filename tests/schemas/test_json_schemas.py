"""JSON Schemas: what is one."""

from __future__ import annotations

import pytest

from headrace.schemas import json_schema


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '"string"', '{"type":"text"}', '{"properties":[]}', '{"items":3}', "[" * 9999],
)
def test_what_is_not_a_json_schema(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_schema.parse(text)


@pytest.mark.parametrize(
    ("pointer", "found"),
    [("/a/b", 1), ("/x~1y/z~0", 2), ("", {"a": {"b": 1}, "x/y": {"z~": 2}}), ("/a/c", None)],
)
def test_pointers(pointer: str, found: object) -> None:
    assert json_schema.pointed({"a": {"b": 1}, "x/y": {"z~": 2}}, pointer) == found
