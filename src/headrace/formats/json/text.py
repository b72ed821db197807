"""JSON text as ksqlDB's JSON library reads and writes it: exact numbers, no spaces, its escapes."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from decimal import Decimal as Number

from headrace.formats.java_numbers import decimal_text, double_text

# A parsed document: None, bool, int, Number, str, list, dict. `MISSING` is an empty text.
Node = object


class _Missing:
    """What an empty document parses to: neither a value nor null."""


MISSING = _Missing()

_SPACE = " \t\n\r"
_ESCAPES = {
    **{code: f"\\u{code:04X}" for code in range(0x20)},
    ord("\b"): "\\b",
    ord("\f"): "\\f",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}
# As deep as Jackson reads.
MAX_DEPTH = 1000
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_UNESCAPED = re.compile(r'[^\x00-\x1f"\\]*')
_BASE64 = re.compile(
    r"(?:\s*[A-Za-z0-9+/]{4})*\s*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\s*", re.ASCII
)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"Non-standard token '{name}': enable it to allow")


_DECODER = json.JSONDecoder(parse_float=Number, parse_constant=_refuse_constant)


def parse(data: bytes) -> Node:
    """The first value in the bytes; what follows it is ignored. ValueError if there is none."""
    _check_depth(data)
    text = data.decode("utf-8")  # UnicodeDecodeError is a ValueError
    text = text.removeprefix("\ufeff").lstrip(_SPACE)
    if not text:
        return MISSING
    try:
        value, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as e:
        raise ValueError(_unexpected(text, e.pos)) from e
    if not isinstance(value, (str, list, dict)) and text[end : end + 1] not in ("", *_SPACE):
        raise ValueError(_unexpected(text, end))
    return value


def _check_depth(data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for token in _BRACKETS.finditer(data):
        bracket = token[0]
        if bracket in (b"[", b"{"):
            depth += 1
        elif bracket in (b"]", b"}"):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ValueError("Document nesting depth exceeds the maximum allowed")
        if depth <= 0 and bracket in (b"]", b"}"):
            return  # the first value ends here, and nobody reads what follows it


def _unexpected(text: str, position: int) -> str:
    if position >= len(text):
        return "Unexpected end-of-input"
    char = text[position]
    return f"Unexpected character ('{char}' (code {ord(char)}))"


def dump(node: Node) -> str:
    """The value on one line without spaces."""
    return _WRITERS[type(node)](node)


def string(text: str) -> str:
    """A quoted string."""
    if _UNESCAPED.fullmatch(text):
        return f'"{text}"'
    return f'"{text.translate(_ESCAPES)}"'


def double(value: float) -> str:
    """Not a number, and infinity, are quoted, because JSON has no other way to say them."""
    text = double_text(value)
    return f'"{text}"' if text[-1] in "Ny" else text


_WRITERS: dict[type, Callable[..., str]] = {
    type(None): lambda _: "null",
    bool: lambda v: "true" if v else "false",
    int: str,
    float: double,
    Number: decimal_text,
    str: string,
    list: lambda items: f"[{','.join(map(dump, items))}]",
    dict: lambda v: f"{{{','.join(f'{string(k)}:{dump(x)}' for k, x in v.items())}}}",
}


def encode_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def decode_bytes(text: str) -> bytes | None:
    """Base 64 with padding; None where it is not."""
    if not _BASE64.fullmatch(text):
        return None
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return None
