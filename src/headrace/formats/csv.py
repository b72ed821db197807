"""Delimited text as ksqlDB's CSV library reads and writes it."""

from __future__ import annotations

# Characters that may start a record's first value without quotes.
UNQUOTED_START = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def parse_record(text: str, delimiter: str) -> list[str] | None:
    """The values of the first record, None if there is none. ValueError for bad quoting."""
    text = text.lstrip("\r\n")  # empty lines are skipped
    if not text:
        return None
    values: list[str] = []
    position = 0
    while True:
        value, position = _token(text, position, delimiter)
        values.append(value)
        if position >= len(text) or text[position] != delimiter:
            return values
        position += 1


def _token(text: str, start: int, delimiter: str) -> tuple[str, int]:
    """A value, and where the delimiter, line end or end of text after it is."""
    if text[start : start + 1] == '"' and delimiter != '"':
        return _quoted(text, start, delimiter)
    end = start
    while end < len(text) and text[end] != delimiter and text[end] not in "\r\n":
        end += 1
    return text[start:end], end


def _quoted(text: str, start: int, delimiter: str) -> tuple[str, int]:
    line = 1 + text.count("\n", 0, start)
    parts: list[str] = []
    position = start + 1
    while True:
        end = text.find('"', position)
        if end < 0:
            raise ValueError(f"(startline {line}) EOF reached before encapsulated token finished")
        parts.append(text[position:end])
        position = end + 1
        if text[position : position + 1] != '"':
            break
        parts.append('"')
        position += 1
    while position < len(text) and text[position] != delimiter and text[position] not in "\r\n":
        if not text[position].isspace():
            raise ValueError(f"(line {line}) invalid char between encapsulated token and delimiter")
        position += 1
    return "".join(parts), position


def write_value(value: str, delimiter: str, *, first: bool) -> str:
    """The value, in quotes where the library puts them."""
    return (
        f'"{value.replace(chr(34), chr(34) * 2)}"'
        if _needs_quotes(value, delimiter, first=first)
        else value
    )


def _needs_quotes(value: str, delimiter: str, *, first: bool) -> bool:
    if not value:
        return first
    if first and value[0] not in UNQUOTED_START:
        return True
    return (
        value[0] <= "#" or value[-1] <= " " or any(c in value for c in ("\n", "\r", '"', delimiter))
    )
