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
        expects=7,
        text="create stream s as select * from r;",
    )
    assert recorded(command, 7) == replace(command, sequence=7)


@pytest.mark.parametrize(
    ("expects", "offset", "counts"), [(None, 3, True), (3, 3, True), (3, 4, False), (3, 2, False)]
)
def test_a_command_counts_only_where_its_author_expected_it(expects, offset, counts):
    assert (
        recorded(Command("type/T/drop", "DROP TYPE T;", expects=expects), offset).counts is counts
    )


def test_a_command_of_a_time_without_other_servers_counts():
    old = b'{"version": 1, "planVersion": 1, "statement": "DROP TYPE T;", "settings": {}}'
    assert Command.from_record(Record("log", 0, 3, 0, b"type/T/drop", old)).counts
