"""Values as texts, the way Java prints them."""

from __future__ import annotations

import decimal


def java_text(value: object) -> str:
    """A value as Java prints it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case decimal.Decimal():
            return format(value, "f")
        case list():
            return f"[{', '.join(map(java_text, value))}]"
        case dict():
            return "{" + ", ".join(f"{java_text(k)}={java_text(v)}" for k, v in value.items()) + "}"
    return str(value)


def valid_text(data: bytes) -> str:
    """Decodes UTF-8; ValueError if it is invalid, or has replacement characters."""
    text = data.decode("utf-8")
    if not text or "\ufffd" in text:
        raise ValueError("not a text")
    return text
