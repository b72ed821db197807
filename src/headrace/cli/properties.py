"""Properties files, as Java and therefore ksqlDB write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headrace.model.errors import HeadraceError

_PAIR = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:\s]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def read_properties(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise HeadraceError(f"Failed to read file: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise HeadraceError(f"Failed to read file: {path}: it is not UTF-8") from None
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    pairs = {}
    for line in _logical_lines(text):
        match = _PAIR.fullmatch(line)
        assert match is not None  # every part of the pattern may be empty
        pairs[_unescaped(match[1])] = _unescaped(match[2])
    return pairs


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blanks; one that ends with a backslash goes on in the next."""
    held = ""
    for line in text.splitlines():
        part = line.lstrip()
        if not held and (not part or part[0] in "#!"):
            continue
        backslashes = len(part) - len(part.rstrip("\\"))
        if backslashes % 2:
            held += part[:-1]
            continue
        yield held + part
        held = ""
    if held:
        yield held


def _unescaped(text: str) -> str:
    def letter(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _LETTERS.get(code, code)

    return _ESCAPE.sub(letter, text)
