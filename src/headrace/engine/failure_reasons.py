"""Extracts from a failure the sentence that a user needs."""

from __future__ import annotations

import re

_PYTHON = re.compile(
    r"^(?:\w+\.)*((?!Py4J)(?!\w*SparkException)\w*(?:Error|Exception)): (.+)$", re.MULTILINE
)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+\.)?([\w$]+): (.+)$", re.MULTILINE)
# What we raise ourselves in a worker, in words for a person.
_SENTENCES = frozenset({"RuntimeError", "StateMismatchError"})


def reason_of(failure: BaseException) -> str:
    """The innermost cause of a Spark failure: a Python error's text, or the last Java cause."""
    text = str(failure)
    for pattern in (_PYTHON, _CAUSE):
        found = pattern.findall(text)
        if found:
            kind, message = found[-1]
            return message.strip() if kind in _SENTENCES else f"{kind}: {message.strip()}"
    return text.strip().split("\n")[0] or type(failure).__name__
