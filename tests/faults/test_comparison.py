"""What the campaign takes for a fault of the service, and what it lets pass."""

from __future__ import annotations

import pytest
from campaign import Campaign, Fault, table
from load import QUERIES

from headrace.topics.records import Record

ONE, TWO, THREE = ((b"k", b'{"N":%d}' % n) for n in (1, 2, 3))
GONE = (b"k", None)


def compared(monkeypatch, tmp_path, kind, mine, twins, guarantee="at_least_once"):
    """The problems that a query's records have, beside its twin's."""
    campaign = Campaign(tmp_path, 1, guarantee)
    written = {"disturbed": mine, "twin": twins}

    def records(_, run):
        return [Record("t", 0, i, 1, key, value) for i, (key, value) in enumerate(written[run])]

    monkeypatch.setattr(campaign, "_records", records)
    return [problem.split(":")[0] for problem in campaign._compare(QUERIES[kind])]


@pytest.mark.parametrize(
    ("kind", "mine", "at_least_once", "exactly_once"),
    [
        ("plain", [ONE, TWO, THREE], [], []),
        ("plain", [ONE, TWO, ONE, TWO, THREE], [], ["plain has too often 2 rows"]),
        ("plain", [ONE, THREE], ["plain lacks 1 rows"], ["plain lacks 1 rows"]),
        ("plain", [TWO, ONE, THREE], ["plain has the rows of key b'k' in another order"], None),
        ("filtered", [ONE, THREE, TWO, THREE], [], []),
        (
            "filtered",
            [THREE, TWO],
            ["filtered lacks 1 rows", "filtered should not have 1 rows"],
            None,
        ),
        ("filtered", [THREE, GONE], ["filtered lacks 1 rows"], None),
    ],
)
def test_problems(monkeypatch, tmp_path, kind, mine, at_least_once, exactly_once):
    twins = [ONE, TWO, THREE]
    assert compared(monkeypatch, tmp_path, kind, mine, twins)[: len(at_least_once) + 1] == (
        at_least_once
    )
    once = at_least_once if exactly_once is None else exactly_once
    found = compared(monkeypatch, tmp_path, kind, mine, twins, "exactly_once_v2")
    assert found[: len(once)] == once and bool(found) == bool(once)


def test_a_run_without_rows_shows_nothing(monkeypatch, tmp_path):
    (problem,) = compared(monkeypatch, tmp_path, "plain", [], [])
    assert problem == "plain has no rows in the twin"


def test_the_table_counts_by_kind():
    made = [Fault("server", 0, 0, "", {}, recovered) for recovered in (10, 30, 20, None)]
    assert table(made).splitlines()[2:] == [
        "| Server killed | 4 | 20 s | 30 s |",
        "| all | 4 | | |",
    ]
