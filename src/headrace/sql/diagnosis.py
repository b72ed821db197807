"""What to say about a text that does not parse, in ksqlDB's words.

Walks the grammar along the tokens, slower than the parser and without building anything, until it
stands where the text goes wrong. What was still possible there decides the message.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from headrace.model.errors import ParseError
from headrace.sql.automaton import EPSILON, Stack, Step, TooManyWays, automaton
from headrace.sql.grammar import Choice, Optional, Reference, Repeat, Sequence, Terminal
from headrace.sql.keywords import COMMANDS, KEYWORDS, RESERVED
from headrace.sql.tokens import Source, Token

# Token kinds in the order in which messages list them, and the names some have there.
_SYMBOLS = (";", ",", "(", ")", ".", "[", "]")
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", ":=", "->", "=>")
_NAMED = {
    "eof": "<EOF>",
    "<>": "NEQ",
    "string": "STRING",
    "integer": "INTEGER_VALUE",
    "decimal": "DECIMAL_VALUE",
    "float": "FLOATING_POINT_VALUE",
    "identifier": "IDENTIFIER",
    "digits": "DIGIT_IDENTIFIER",
    "quoted": "QUOTED_IDENTIFIER",
    "backquoted": "BACKQUOTED_IDENTIFIER",
    "variable": "VARIABLE",
}
_ORDER = {
    kind: number
    for number, kind in enumerate(("eof", *_SYMBOLS, *KEYWORDS, *_OPERATORS, *list(_NAMED)[2:]))
}


def diagnose(source: Source, index: int, start: int, rule: str) -> ParseError:
    """The error of a text that the parser gave up at the token `index`, having begun at `start`
    with what the rule describes."""
    fault = _find(source.tokens, start, rule) or _NoWay(index)
    token = source.tokens[fault.index]
    position = source.position(token.start)
    place = f"{position.line}:{position.column}"
    explanation = _explanation(fault, token, place) + _suggestion(fault, source.tokens)
    message = f"line {place}: Syntax Error\n{explanation}"
    return ParseError(message, position, source.line(position.line))


class Fault(Exception):
    """Where the walk ended: the token, and what could have come instead."""

    def __init__(self, index: int, expected: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.index = index
        self.expected = expected


class _NoWay(Fault):
    """No alternative leads on."""


class _Extraneous(Fault):
    """The next token would do: this one is too much."""


class _Missing(Fault):
    """This token would do after one that is missing."""


class _Mismatch(Fault):
    """Neither would do."""


# Walks share what the automaton remembers.
_WALKING = threading.Lock()


def _find(tokens: tuple[Token, ...], start: int, rule: str) -> Fault | None:
    try:
        with _WALKING:
            Walk(tokens, start).run_rule(rule)
    except Fault as fault:
        return fault
    except (TooManyWays, RecursionError):
        pass
    return None


def _explanation(fault: Fault, token: Token, place: str) -> str:
    text, expected = token.text, _listed(fault.expected)
    if isinstance(fault, _NoWay):
        return f"Syntax error at or near '{text}' at line {place}"
    if isinstance(fault, _Missing):
        return f"missing {expected} at '{text}'"
    if isinstance(fault, _Extraneous) and token.kind in RESERVED:
        return (
            f'"{text}" is a reserved keyword and it can\'t be used as an identifier. '
            f"You can use it as an identifier by escaping it as '{text}' "
        )
    if fault.expected - {"eof"} == frozenset(COMMANDS):
        return f"Unknown statement '{text}'\nDid you mean '{_closest(text, COMMANDS)}'?"
    if "eof" in fault.expected or token.kind == "eof":
        return "Syntax error at or near \";\"\n'}', ']', or ')' is missing"
    return f"Expecting {expected}" if len(expected.split(",")) <= 3 else ""


def _listed(kinds: Iterable[str]) -> str:
    names = [_NAMED.get(kind, f"'{kind}'") for kind in sorted(kinds, key=_ORDER.__getitem__)]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _suggestion(fault: Fault, tokens: tuple[Token, ...]) -> str:
    """The keyword that was probably meant, if the word here or before is a name but nearly one."""
    here, before = tokens[fault.index], tokens[max(fault.index - 1, 0)]
    expected = fault.expected | automaton().followers(before.kind)
    words = [] if frozenset(COMMANDS) <= expected else [w for w in KEYWORDS if w in expected]
    for token, tolerance in ((here, 2), (before, 1)):
        if token.kind == "identifier" and words:
            closest = _closest(token.text, words)
            if len(closest) > 3 and _distance(closest, token.text.upper()) <= tolerance:
                return f"\nDid you mean '{closest}'?"
    return ""


def _closest(text: str, words: Iterable[str]) -> str:
    return min(words, key=lambda word: _distance(word, text.upper()))


def _distance(a: str, b: str) -> int:
    """How many letters have to be added, taken away or replaced."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            best = min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
            diagonal, row[j] = row[j], best
    return row[-1]


class Walk:
    """Goes through the rules as ksqlDB's parser does, up to the first error."""

    def __init__(self, tokens: tuple[Token, ...], start: int) -> None:
        self._kinds = [token.kind for token in tokens]
        if self._kinds[start] in ("DEFINE", "UNDEFINE") and self._kinds[start + 1] in KEYWORDS:
            self._kinds[start + 1] = "identifier"  # any word may name a variable
        self._index = start
        self._stack: Stack = None
        self._automaton = automaton()
        self._automaton.forget()
        # The first place, since a token was last sure to fit, where something optional was left
        # out. When a token fits nowhere later, what could have come there is named too.
        self._left_out: tuple[int, Stack] | None = None
        self._resumed = start > 0  # statements came before: the walk begins inside their loop

    def run_rule(self, rule: str) -> None:
        self._run(self._automaton.bodies[rule], 0)

    def _kind(self, ahead: int = 0) -> str:
        return self._kinds[min(self._index + ahead, len(self._kinds) - 1)]

    def _run(self, step: Step, power: int) -> None:
        match step.element:
            case Terminal(kinds):
                if self._kind() not in kinds:
                    self._recover(step)
                self._index += 1
            case Reference(rule, inner_power):
                outer = self._stack
                self._stack = self._automaton.pushed(step.exit, outer)
                self._run(self._automaton.bodies[rule], inner_power)
                self._stack = outer
            case Sequence():
                for part in step.parts:
                    self._run(part, power)
            case Choice():
                self._sync(step.state)
                chosen = self._choose(step.state, power)
                if chosen is None:
                    raise _NoWay(self._index)
                self._run(step.parts[chosen - 1], power)
            case Optional():
                self._sync(step.state)
                chosen = self._choose(step.state, power)
                if chosen is not None and chosen <= len(step.parts):
                    self._run(step.parts[chosen - 1], power)
            case Repeat(_, at_least_once):
                self._repeat(step, power, at_least_once)

    def _repeat(self, step: Step, power: int, at_least_once: bool) -> None:
        self._sync(step.back if self._resumed else step.state, looping=self._resumed)
        self._resumed = False
        decision = step.back if at_least_once else step.state
        if not at_least_once and self._choose(decision, power) != 1:
            return
        while True:
            self._run(step.parts[0], power)
            self._sync(step.back, looping=True)
            if self._choose(decision, power) != 1:
                return

    def _sync(self, state: int, *, looping: bool = False) -> None:
        """Checks the next token against what may come, before deciding by it."""
        tokens = self._automaton.tokens(state)
        if self._kind() in tokens:
            self._left_out = None
        elif EPSILON in tokens:
            self._left_out = self._left_out or (state, self._stack)
        else:
            expected = self._automaton.expected(state, self._stack)
            if looping or self._kind(1) in expected:
                raise _Extraneous(self._index, expected)
            raise _Mismatch(self._index, expected)

    def _recover(self, step: Step) -> None:
        """The token is not the one that has to come."""
        expected = self._automaton.expected(step.state, self._stack)
        if self._kind(1) in expected:
            raise _Extraneous(self._index, expected)
        if self._kind() in self._automaton.expected(step.exit, self._stack):
            raise _Missing(self._index, expected)
        if self._left_out is not None:
            expected = self._automaton.expected(*self._left_out)
        raise _Mismatch(self._index, expected)

    def _choose(self, state: int, power: int) -> int | None:
        """The alternative that the next tokens lead into."""
        choices = self._automaton.by_one_token(state)
        if choices is not None:
            kind = self._kind()
            return next((n for n, c in enumerate(choices, start=1) if kind in c), None)
        outlook = self._automaton.outlook(state, power)
        for index in range(self._index, len(self._kinds)):
            following = outlook.after(self._kinds[index])
            if following is None:
                finished = outlook.finished()
                if finished is None:
                    raise _NoWay(index)
                return finished
            if following.chosen is not None:
                return following.chosen
            outlook = following
        return min(alternative for _, _, alternative, _ in outlook.configs)
