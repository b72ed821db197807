"""What statements are, told by their first words: exactly what the parser says, for any text."""

import time

import parser_cases
import pytest

from headrace.model.errors import HeadraceError
from headrace.model.requests import QueryKind
from headrace.sql import ast
from headrace.sql.outline import MOST_IN_STATEMENT, MOST_TOKENS, outlines
from headrace.sql.parser import parse, split
from headrace.sql.statements.statement_parser import STATEMENTS
from headrace.sql.tokens import tokenize

PUSH, PULL = QueryKind.PUSH, QueryKind.PULL


@pytest.mark.parametrize("text", parser_cases.inputs("statements.txt"))
def test_outlines_agree_with_the_parser(text):
    try:
        parsed = [one.statement for one in parse(text)]
    except HeadraceError:
        return
    found = outlines(text)
    assert [o.effect for o in found] == [s.effect for s in parsed]
    for outline, statement in zip(found, parsed, strict=True):
        if isinstance(statement, ast.Query):
            assert (outline.kind, outline.query) == (ast.Query, statement.kind)
        else:
            assert outline.query is None


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("SELECT * FROM s EMIT CHANGES;", PUSH),
        ("select a from s emit final limit 3", PUSH),
        ("SELECT a FROM s EMIT /* x */ CHANGES LIMIT ${n};", PUSH),
        ("SELECT emit, changes FROM s;", PULL),
        ("SELECT emit changes FROM s;", PULL),
        ("SELECT 'EMIT CHANGES' FROM s; -- EMIT CHANGES", PULL),
        ("SELECT `EMIT` FROM s LIMIT 3;", PULL),
    ],
)
def test_push_or_pull(text, query):
    assert [o.query for o in outlines(text)] == [query]


@pytest.mark.parametrize(
    "text", ["PRINT t;", "  -- x\n/* SELECT */\n print 't'", "\n" * 99 + "Print t;"]
)
def test_print(text):
    assert [o.kind for o in outlines(text)] == [ast.PrintTopic]


def test_every_statement_says_what_it_does():
    """Whoever adds a statement decides: what says nothing is refused to readers."""
    kinds = set(STATEMENTS.values())
    reading = {kind for kind in kinds if kind.effect is ast.Effect.READS}
    names = ("Query", "List", "Describe", "Explain", "Print", "Assert")
    assert {kind for kind in kinds if kind.__name__.startswith(names)} == reading
    session = {kind for kind in kinds if kind.effect is ast.Effect.SESSION}
    assert session == {
        ast.SetProperty,
        ast.UnsetProperty,
        ast.DefineVariable,
        ast.UndefineVariable,
    }


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("SHOW NONSENSE;", ast.Effect.READS),
        ("CREATE NONSENSE;", ast.Effect.CHANGES),
        ("${x} STREAM s;", ast.Effect.CHANGES),
        ("SELCT;", ast.Effect.CHANGES),
        ("EXPLAIN CREATE STREAM x AS SELECT * FROM s;", ast.Effect.READS),
    ],
)
def test_what_is_no_statement(text, effect):
    assert [o.effect for o in outlines(text)] == [effect]


PIECES = ["/*", "/", "'", '"', "`", "''", "--@a\n", "--\n", " \n", "1.", "${a", "$", "a.", "'a''"]


@pytest.mark.parametrize("piece", PIECES)
def test_time_to_read_grows_with_the_length_alone(piece):
    """A text that is sixteen times as long takes sixteen times as long, not 256 times."""

    def seconds(count, start=""):
        text = start + piece * count
        started = time.thread_time()  # of other processes' work it knows nothing
        list(split(text))
        return time.thread_time() - started

    tries = ["\n" * i for i in range(3)]  # none is remembered
    short = min(seconds(4_000, start) for start in tries)
    assert any(seconds(64_000, start) < 100 * max(short, 0.005) for start in tries)


def test_a_text_of_too_many_tokens_is_refused():
    with pytest.raises(HeadraceError, match="split it up"):
        outlines("+;" * (MOST_TOKENS // 2 + 1))
    with pytest.raises(HeadraceError, match="Statement is too large to parse"):
        outlines("+" * (MOST_IN_STATEMENT + 1))
    assert len(tokenize("+" * (MOST_TOKENS + 1)).tokens) == MOST_TOKENS + 2  # a file may be long


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("'a''b'", ["'a''b'"]),
        ("'a'''", ["'a'''"]),
        ("''''", ["''''"]),
        ("'a''", ["'a'", "'"]),
        ("'''", ["''", "'"]),
        ("'a''b''c", ["'a''b'", "'", "c"]),
        ("'", ["'"]),
        ('"a"`b`"', ['"a"', "`b`", '"']),
        ("/*a*//*b", ["/", "*", "b"]),
        ("/*/ a */b", ["b"]),
        ("/*a/**/*/", ["*", "/"]),
    ],
)
def test_quotes_and_comments(text, tokens):
    assert [token.text for token in tokenize(text).tokens[:-1]] == tokens
