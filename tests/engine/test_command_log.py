"""Commands as they stand in the log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.catalog.commands import Command
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


def test_a_command_of_a_time_without_other_servers_counts():
    old = b'{"version": 1, "planVersion": 1, "statement": "DROP TYPE T;", "settings": {}}'
    assert Command.from_record(Record("log", 0, 3, 0, b"type/T/drop", old)).counts(2)
