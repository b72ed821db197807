"""docs/serialization.md is true: every statement is planned, every record read or written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headrace.engine.layouts import unregistered_layout
from headrace.formats.base import RegistryFormat, RegistrySchema
from headrace.model.settings import Settings
from headrace.model.sources import Source
from headrace.plan.sources.wrapping import is_wrapped
from headrace.testing.rehearsal import PretendedTopics, Rehearsal

PAGE = (Path(__file__).parents[2] / "docs" / "serialization.md").read_text(encoding="utf-8")
# Statements, the language of the block that follows, and that block.
BLOCKS = re.findall(r"```sql\n(.*?)```\n(?:(?:[^\n`#]*\n)??```(json)\n(.*?)```)?", PAGE, re.DOTALL)
ROWS = re.findall(r"^\| (.*) \|$", PAGE, re.MULTILINE)
ROW = {"ID": 10, "NAME": "bob", "M_ID": 10}


def planned(statements: str) -> tuple[Rehearsal, Source]:
    """The source that the last statement makes."""
    server = Rehearsal(PretendedTopics(), Settings())
    changes = server.run(statements)
    assert not any(change.warnings for change in changes)
    assert changes[-1].creates is not None
    return server, changes[-1].creates


def test_the_page_has_its_examples():
    assert len(BLOCKS) == len(re.findall("```sql", PAGE)) == 16
    assert sum(language == "json" for _, language, _ in BLOCKS) == 13


@pytest.mark.parametrize(("statements", "language", "shown"), BLOCKS)
def test_blocks(statements: str, language: str, shown: str):
    _, source = planned(statements)
    serde, columns = source.side("value")
    format_, layout = unregistered_layout(serde, columns, "value", source.topic)
    if not language:
        return
    if isinstance(format_, RegistryFormat):
        schema = RegistrySchema(shown, "AVRO")
        fields = format_.columns_from_registry(schema, "value", layout.wrapped, {})
        assert [f.type for f in fields] == [c.type for c in columns]
        if layout.wrapped:
            assert [f.name for f in fields] == [c.name for c in columns]
        return
    codec = format_.python(layout)
    row = codec.decode(shown.encode())
    assert row is not None
    assert all(value is not None for value in row.values())
    written = codec.encode(row)
    assert written is not None
    assert _upper(json.loads(written), layout.wrapped) == _upper(json.loads(shown), layout.wrapped)


def _upper(value: object, wrapped: bool) -> object:
    """Names of columns are written in upper case."""
    assert not wrapped or isinstance(value, dict)
    return {name.upper(): v for name, v in value.items()} if wrapped else value  # type: ignore[attr-defined]


def test_the_delimited_value():
    _, source = planned(BLOCKS[1][0])
    format_, layout = unregistered_layout(source.value, source.schema.value, "value", source.topic)
    [shown] = re.findall(r"The value `(.*?)` is the row", PAGE)
    assert format_.python(layout).decode(shown.encode()) == {"ID": 120, "NAME": "bob", "AGE": 49}


SOURCES = BLOCKS[-1][0]
EXAMPLES = [
    cells for row in ROWS if len(cells := row.split(" | ")) == 4 and cells[1].startswith("`CREATE")
]


def test_the_sources_of_the_examples():
    server, _ = planned(SOURCES)
    rows = [row.split(" | ") for row in ROWS if "_SOURCE` |" in row]
    assert len(rows) == 3
    for name, values, downstream in rows:
        source = server.catalog.source(name.strip("`"))
        assert source is not None
        check(source, values, downstream)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda cells: cells[0])
def test_example(example: list[str]):
    _, statement, values, downstream = example
    _, source = planned(SOURCES + statement.strip("`"))
    check(source, values, downstream)


def test_all_examples_of_the_proposal_are_there():
    assert [cells[0] for cells in EXAMPLES[:9]] == list("ABCDEFGHI")


def check(source: Source, values: str, downstream: str) -> None:
    format_, layout = unregistered_layout(source.value, source.schema.value, "value", source.topic)
    written = format_.python(layout).encode({c.name: ROW[c.name] for c in layout.columns})
    assert written is not None
    assert written.decode() == values.split("`")[1]
    assert is_wrapped(source.value, 1) is downstream.startswith("wrapped")
    assert source.value.wrap_inherited
