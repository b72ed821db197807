"""LIKE as a regular expression of Java that never goes back.

Spark's own makes `.*` of each `%`. Java tries all ways to divide a text among those: with ten of
them, and a text of a thousand letters, for ever. But a part between two `%` may as well be taken
where it is first found, for good (an atomic group): what follows then has the most room.
"""

from __future__ import annotations

_ANY, _ONE = "%", "_"


def like_regex(pattern: str, escape: str | None) -> str | None:
    """The expression for a pattern with several `%`; None where Spark's own is as good, or where it
    is to say what is wrong."""
    parts = _parts(pattern, escape)
    if parts is None or len(parts) < 3:
        return None
    first, *middle, last = parts
    found = "".join(f"(?>.*?{part})" for part in middle if part)
    end = f".*{last}\\z" if last else ""
    return f"(?s)\\A{first}{found}{end}"


def _parts(pattern: str, escape: str | None) -> list[str] | None:
    """What stands between the `%`, each as an expression."""
    parts = [""]
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            letter = next(letters, "")
            if letter not in (_ANY, _ONE, escape) or not letter:
                return None
            parts[-1] += _quoted(letter)
        elif letter == _ANY:
            parts.append("")
        else:
            parts[-1] += "." if letter == _ONE else _quoted(letter)
    return parts


def _quoted(letter: str) -> str:
    return letter if letter.isalnum() else "\\" + letter
