"""Commands as they stand in the log."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headrace.catalog.catalog import Catalog
from headrace.catalog.commands import Command
from headrace.plan.ddl import plan_create_source
from headrace.sql import ast
from headrace.sql.parser import parse_statement
from headrace.topics.records import Record


def recorded(command: Command, offset: int) -> Command:
    return Command.from_record(Record("log", 0, offset, 0, command.id.encode(), command.to_bytes()))


def test_a_command_says_the_same_after_its_way_through_kafka():
    command = Command(
        "stream/S/create",
        "CREATE STREAM S AS SELECT * FROM R;",
        {
            "ksql.persistence.wrap.single.values": False,
            "ksql.persistence.wrap.single.keys": False,
        },
        query_id="CSAS_S_7",
        starts={"r": {0: 4, 1: 5}},
        number=6,
        after=5,
        text="create stream s as select * from r;",
    )
    assert recorded(command, 7) == replace(command, sequence=7)


@pytest.mark.parametrize(
    ("after", "last", "counts"), [(None, 3, True), (3, 3, True), (3, 4, False), (-1, 2, False)]
)
def test_a_command_counts_only_after_what_its_author_had_seen(after, last, counts):
    command = recorded(Command("type/T/drop", "DROP TYPE T;", after=after), 9)
    assert command.counts(last) is counts


def test_a_command_of_a_time_without_settings_for_single_fields_keeps_its_form():
    """KLIP-3's compatibility section: values were wrapped, keys were not."""
    text = "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', FORMAT='JSON');"
    body = {"version": 1, "planVersion": 1, "statement": text, "settings": {}}
    record = Record("log", 0, 3, 0, b"stream/S/create", json.dumps(body).encode())
    old = Command.from_record(record)
    statement = parse_statement(old.statement)
    assert isinstance(statement, ast.CreateSource)
    settings = {name: str(value) for name, value in old.settings.items()}
    source = plan_create_source(statement, Catalog(), settings)
    assert (source.key.wrap, source.value.wrap) == (False, True)
    # What it captured counts, once it captured anything.
    body["settings"] = {"ksql.persistence.wrap.single.values": False}
    new = Command.from_record(replace(record, value=json.dumps(body).encode()))
    assert new.settings["ksql.persistence.wrap.single.values"] is False


def test_a_command_of_a_time_without_other_servers_counts():
    old = b'{"version": 1, "planVersion": 1, "statement": "DROP TYPE T;", "settings": {}}'
    assert Command.from_record(Record("log", 0, 3, 0, b"type/T/drop", old)).counts(2)
