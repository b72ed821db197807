"""A format is one module: nothing else knows its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.engine.layouts import unregistered_layout
from headrace.engine.statements.print_topic import Guesses, _guesses
from headrace.formats import FORMATS
from headrace.formats.base import ColumnCodec, Feature, Format, RowCodec
from headrace.model.errors import StatementError
from headrace.model.types import STRING
from headrace.plan.explain import explain
from naming import modules_that_write
from plan_catalog import Catalog

# Schema languages have such names too.
APART = ("registry/", "schemas/")
# Words that are no format there, or the one that a statement leaves out.
OTHERWISE = {
    "JSON": {"cli/shell_session.py", "functions/declare/declaration.py"},
    "KAFKA": {"model/settings.py"},
    "PROTOBUF_NOSR": {"server/response_formats.py"},
    # It says that there is no format.
    "NONE": {
        "engine/statements/replay.py",
        "kafka/http_access.py",
        "plan/clauses/copartition.py",
        "plan/clauses/sink.py",
        "server/settings.py",
    },
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_named_in_its_own_module(name: str) -> None:
    written = {m for m in modules_that_write()[name] if not m.startswith(APART)}
    named = written - OTHERWISE.get(name, set())
    home = type(FORMATS[name]).__module__.removeprefix("headrace.").replace(".", "/") + ".py"
    same_folder = {m for m in named if Path(m).parent == Path(home).parent != Path("formats")}
    assert home in named
    assert named - same_folder <= {home}


class ReversedRows(RowCodec):
    def __init__(self, layout) -> None:
        self._name = layout.columns[0].name

    def decode(self, data):
        return None if data is None else {self._name: data.decode()[::-1]}

    def encode(self, row):
        return None if row is None else str(row[self._name])[::-1].encode()


class ReversedColumns(ColumnCodec):
    def decode(self, data):
        raise AssertionError("nothing runs here")

    encode = decode


class ReversedFormat(Format):
    """One text, from its end to its beginning."""

    name = "REVERSED"
    features = frozenset({Feature.UNWRAP})
    structured = False

    def check_columns(self, columns, side, properties):
        if [c.type for c in columns] != [STRING]:
            raise StatementError("The 'REVERSED' format holds one STRING.")

    def shows(self):
        return {"REVERSED": lambda data: _read(data)}

    def python(self, layout):
        return ReversedRows(layout)

    def spark(self, layout):
        return ReversedColumns()


def _read(data: bytes) -> str:
    if not data.endswith(b"<"):
        raise ValueError("it begins with <")
    return data.decode()[::-1]


@pytest.fixture
def reversed_(monkeypatch):
    monkeypatch.setitem(FORMATS, "REVERSED", ReversedFormat())


def test_a_new_format_needs_its_module_and_a_line_of_the_table(reversed_) -> None:
    catalog = Catalog()
    catalog.run("CREATE STREAM R (V STRING) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='reversed');")
    catalog.run("CREATE STREAM C AS SELECT V AS TEXT FROM R;")
    source, copy = catalog.known["R"], catalog.known["C"]
    assert (source.value.format, copy.value.format) == ("REVERSED", "REVERSED")
    assert "REVERSED" in explain(catalog.plan("SELECT * FROM R EMIT CHANGES;").node)

    format_, layout = unregistered_layout(copy.value, copy.schema.value, "value", copy.topic)
    assert not layout.wrapped
    codec = format_.python(layout)
    assert codec.encode({"TEXT": "abc"}) == b"cba"
    assert codec.decode(b"cba") == {"TEXT": "abc"}

    printed = Guesses(_guesses(None))
    printed.text(b"cbacba<")
    assert printed.names == ["KAFKA_STRING", "REVERSED"]
    printed.text(b"cbacba")
    assert printed.names == ["KAFKA_STRING"]


def test_what_it_cannot_hold_is_refused_where_a_source_is_made(reversed_) -> None:
    catalog = Catalog()
    with pytest.raises(StatementError, match="The 'REVERSED' format holds one STRING"):
        catalog.run("CREATE STREAM R (N INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='REVERSED');")
    with pytest.raises(StatementError, match="does not support the following configs"):
        catalog.run(
            "CREATE STREAM R (V STRING) WITH "
            "(KAFKA_TOPIC='r', VALUE_FORMAT='REVERSED', VALUE_DELIMITER='|');"
        )


def test_without_the_line_nobody_knows_it() -> None:
    with pytest.raises(StatementError, match="Unknown format: REVERSED"):
        Catalog().run("CREATE STREAM R (V STRING) WITH (KAFKA_TOPIC='r', FORMAT='REVERSED');")
