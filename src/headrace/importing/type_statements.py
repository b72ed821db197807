"""Custom types as statements, from how the REST API tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.types import quote

Json = Mapping[str, Any]


def type_statement(name: str, schema: Json) -> str:
    return f"CREATE TYPE {quote(name)} AS {_type_text(schema)};"


def _type_text(schema: Json) -> str:
    match schema["type"]:
        case "STRUCT":
            fields = ", ".join(_field(field) for field in schema["fields"])
            return f"STRUCT<{fields}>"
        case "ARRAY":
            return f"ARRAY<{_type_text(schema['memberSchema'])}>"
        case "MAP":
            return f"MAP<STRING, {_type_text(schema['memberSchema'])}>"
        case "DECIMAL":
            parameters = schema["parameters"]
            return f"DECIMAL({parameters['precision']}, {parameters['scale']})"
    return str(schema["type"])


def _field(field: Json) -> str:
    return f"{quote(field['name'])} {_type_text(field['schema'])}"
