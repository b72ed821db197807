"""Error messages for text that does not parse, in ksqlDB's words.

The parser says at which token it stopped and what it looked for there. Whether a token is missing,
whether a word only has to be quoted, and which keyword was probably meant is found by asking the
parser again: does it get further in the text so changed?
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.model.errors import ParseError
from headrace.sql.cursor import NAME, Cursor, Unexpected
from headrace.sql.keywords import KEYWORDS, RESERVED
from headrace.sql.statements.statement_parser import STATEMENTS, SYNONYMS, StatementParser
from headrace.sql.tokens import Token

# The names that messages have for kinds of tokens, where it is not the token itself.
_NAMED = {
    "eof": "<EOF>",
    "string": "STRING",
    "integer": "INTEGER_VALUE",
    "decimal": "DECIMAL_VALUE",
    "float": "FLOATING_POINT_VALUE",
}
_LONGEST = max(map(len, KEYWORDS)) * 2
_COMMANDS = sorted({words[0] for words in STATEMENTS} | set(SYNONYMS))
# More than this is no help to anybody.
_MAX_LISTED = 3


def diagnose(parser: Cursor, fault: Unexpected) -> ParseError:
    """The error of the text that the parser gave up."""
    source = parser.source
    token = source.tokens[fault.index]
    position = source.position(token.start)
    place = f"{position.line}:{position.column}"
    attempt = _Attempt(parser, fault.index)
    explanation = _explanation(attempt, fault, token, place)
    message = f"line {place}: Syntax Error\n{explanation}"
    return ParseError(message, position, source.line(position.line))


def _explanation(attempt: _Attempt, fault: Unexpected, token: Token, place: str) -> str:
    text = token.text
    if attempt.at_statement:
        return f"Unknown statement '{text}'\nDid you mean '{_closest(text, _COMMANDS)}'?"
    missing = fault.required
    if missing and not missing.isalpha() and attempt.gets_further_with(missing):
        return f"missing {_listed([missing])} at '{text}'"
    is_name = fault.wanted == (NAME,)
    if is_name and token.kind in RESERVED and attempt.gets_further_as(NAME):
        return (
            f'"{text}" is a reserved keyword and it can\'t be used as an identifier. '
            f"You can use it as an identifier by escaping it as '{text}' "
        )
    if token.kind == "eof":
        return "Syntax error at or near \";\"\n'}', ']', or ')' is missing"
    hint = _hint(attempt)
    if is_name or not fault.wanted:
        return f"Syntax error at or near '{text}' at line {place}{hint}"
    wanted = list(dict.fromkeys(fault.wanted))
    return (f"Expecting {_listed(wanted)}" if len(wanted) <= _MAX_LISTED else "") + hint


class _Attempt:
    """The text with a token changed: does the parser get beyond the place where it stopped?"""

    def __init__(self, parser: Cursor, index: int) -> None:
        self._parser = parser
        self._index = index
        self._tokens = parser.source.tokens
        self.at_statement = index == parser.start and isinstance(parser, StatementParser)

    def token(self, back: int = 0) -> Token:
        """The token here, or so many before it."""
        return self._tokens[max(self._index - back, self._parser.start)]

    def gets_further_with(self, missing: str) -> bool:
        """With a token more before this one."""
        here = self.token()
        inserted = Token(missing, missing, here.start)
        return self._reached(self._index, inserted, here) > self._index + 1

    def gets_further_as(self, kind: str, back: int = 0) -> bool:
        """With a token of this kind instead of the one here, or so many before."""
        instead = self.token(back)._replace(kind=kind)
        return self._reached(self._index - back, instead) > self._index

    def _reached(self, index: int, *instead: Token) -> int:
        """Where the parser stops when these tokens stand for the one at the index."""
        tokens = (*self._tokens[:index], *instead, *self._tokens[index + 1 :])
        source = replace(self._parser.source, tokens=tokens)
        again = type(self._parser)(source, tests=self._parser.tests, start=self._parser.start)
        try:
            again.whole()
        except Unexpected as unexpected:
            return unexpected.index
        except (ParseError, RecursionError):
            return again.index
        return len(tokens)


def _hint(attempt: _Attempt) -> str:
    """The keyword that was probably meant, if the word here or before is a name but nearly one."""
    for back, tolerance in ((0, 2), (1, 1)):
        token = attempt.token(back)
        if token.kind == "identifier":
            for word in _near(token.text.upper(), tolerance):
                if attempt.gets_further_as(word, back):
                    return f"\nDid you mean '{word}'?"
    return ""


def _listed(kinds: list[str]) -> str:
    names = [_NAMED.get(kind, f"'{kind}'") for kind in kinds]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _near(text: str, tolerance: int) -> list[str]:
    """Keywords that are so many letters away, the nearest first; short ones are near everything."""
    words = (w for w in KEYWORDS if len(w) > 3 and abs(len(w) - len(text)) <= tolerance)
    distances = sorted((_distance(word, text), word) for word in words)
    return [word for distance, word in distances if distance <= tolerance]


def _closest(text: str, words: Iterable[str]) -> str:
    start = text[:_LONGEST].upper()  # a text of any length may stand there
    return min(words, key=lambda word: _distance(word, start))


def _distance(a: str, b: str) -> int:
    """How many letters have to be added, taken away or replaced."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            best = min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
            diagonal, row[j] = row[j], best
    return row[-1]
