"""Limits the size of JSON that is parsed on the event loop.

Python's parser lets no other thread run before it is done. It takes a text of megabytes in its
stride, but not a million of little arrays: values are what costs.
"""

from __future__ import annotations

import re
from json.decoder import scanstring  # type: ignore[attr-defined]

MOST_VALUES = 100_000  # about 30 ms
_HARMLESS_LENGTH = 64 * 1024
_SIGN = re.compile(r'["\[{,]')


def has_too_many_values(text: str) -> bool:
    """Whether the text, if it is JSON, holds more than `MOST_VALUES`; it may be anything else."""
    if len(text) <= _HARMLESS_LENGTH:
        return False
    values = 0
    place = 0
    while values <= MOST_VALUES:
        found = _SIGN.search(text, place)
        if found is None:
            return False
        place = found.end()
        if found.group() != '"':
            values += 1
            continue
        try:
            _, place = scanstring(text, place, False)
        except ValueError:
            return False  # the parser will say what is wrong
    return True
