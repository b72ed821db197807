"""What the campaign takes for a fault of the service, and what it lets pass."""

from __future__ import annotations

import pytest
from campaign import Campaign, Fault, table
from kinds import newest_of
from load import HALVES, QUERIES

from headrace.kafka.records import Record

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


@pytest.mark.parametrize(
    ("guarantee", "read", "problems"),
    [
        ("at_least_once", [0, 1, 1, 2], []),
        ("at_least_once", [0, 2], ["reborn lacks the records [1]"]),
        ("exactly_once_v2", [0, 1, 2], []),
        ("exactly_once_v2", [0, 1, 1, 2], ["reborn has records more than once: [1]"]),
    ],
)
def test_problems_of_a_topic_that_was_made_again(monkeypatch, tmp_path, guarantee, read, problems):
    campaign = Campaign(tmp_path, 1, guarantee)
    campaign.reborn = 3
    records = [Record("t", 0, i, 1, b"k", b'{"N":%d}' % n) for i, n in enumerate(read)]
    monkeypatch.setattr(campaign, "_records", lambda kind, run: records)
    assert campaign._compare_reborn() == problems


@pytest.mark.parametrize(
    ("planned", "done", "disk_lies", "torn"),
    [
        (7, 7, True, "offsets/7"),
        (7, 6, True, "offsets/7"),
        (7, 7, False, "offsets/8"),
        (7, 6, False, "commits/7"),
        (0, None, False, "commits/0"),
        (None, None, True, None),
    ],
)
def test_the_file_that_a_power_cut_tears(tmp_path, planned, done, disk_lies, torn):
    for log, last in (("offsets", planned), ("commits", done)):
        (tmp_path / log).mkdir()
        for number in range(last + 1 if last is not None else 0):
            (tmp_path / log / str(number)).write_text("v1")
    found = newest_of(tmp_path, ran_is_kept=not disk_lies)
    assert found == (None if torn is None else tmp_path / torn)


def test_two_runs_have_every_query():
    assert {name for half in HALVES for name in half} == QUERIES.keys()


def test_the_table_counts_by_kind():
    made = [Fault("server", 0, 0, "", {}, recovered) for recovered in (10, 30, 20, None)]
    assert table(made).splitlines()[2:] == [
        "| Server killed | 4 | 20 s | 30 s |",
        "| all | 4 | | |",
    ]
