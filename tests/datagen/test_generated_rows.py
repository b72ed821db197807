"""Rows of the quickstarts: their fields, their keys, visitors that stay, times."""

import json
import re

import pytest

from headrace.datagen.quickstarts import QUICKSTARTS, quickstart
from headrace.datagen.rows import RowGenerator, check_fields, columns_of, read_schema, shown
from headrace.datagen.sessions import MOST, SECONDS, Sessions
from headrace.model.errors import HeadraceError

FIELDS = {
    "users": "registertime userid regionid gender",
    "users_": "registertime userid regionid gender interests contactinfo",
    "orders": "ordertime orderid itemid orderunits address",
    "pageviews": "viewtime userid pageid",
    "ratings": "rating_id user_id stars route_id rating_time channel message",
    "clickstream": ("ip userid remote_user time _time request status bytes referrer agent"),
    "clickstream_users": "user_id username registered_at first_name last_name city level",
    "clickstream_codes": "code definition",
}
NOW = 1_750_000_000.5


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.mark.parametrize("name", QUICKSTARTS)
def test_a_quickstart_has_its_documented_fields(name, seed):
    record = read_schema(quickstart(name.upper()).schema)
    columns = columns_of(record)
    assert [c.name for c in columns] == FIELDS[name].split()
    check_fields(columns, quickstart(name).key, None)
    for _ in range(50):
        assert list(RowGenerator(record, seed).row()) == FIELDS[name].split()


def test_orders(seed):
    generator = RowGenerator(read_schema(quickstart("orders").schema), seed)
    rows = [generator.row() for _ in range(100)]
    assert [row["orderid"] for row in rows] == list(range(100))
    for row in rows:
        assert 1487715775521 <= row["ordertime"] < 1519273364600
        assert re.fullmatch("Item_[1-9][0-9]{0,2}", row["itemid"])
        assert 0.1 <= row["orderunits"] <= 10
        assert re.fullmatch("City_[1-9]{0,2}", row["address"]["city"])
        assert 10000 <= row["address"]["zipcode"] < 99999


def test_times_are_the_time(seed):
    generator = RowGenerator(read_schema(quickstart("clickstream").schema), seed, clock=lambda: NOW)
    row = generator.row()
    assert row["_time"] == 1_750_000_000_500
    assert row["time"] == "15/Jun/2025:15:06:40 +0000"


def test_few_visitors_at_a_time_each_with_one_number(seed):
    clock = Clock()
    generator = RowGenerator(read_schema(quickstart("clickstream").schema), seed, clock=clock)
    seen = {}
    for _ in range(4):
        rows = [generator.row() for _ in range(200)]
        assert len({row["ip"] for row in rows}) == MOST
        for row in rows:
            assert seen.setdefault(row["ip"], row["userid"]) == row["userid"]
        clock.now += SECONDS + 1
    assert len(set(seen.values())) == len(seen) > MOST


def test_more_visitors_than_numbers(seed):
    from random import Random

    sessions = Sessions(Random(seed), Clock())
    assert {sessions.number(str(i), 3) for i in range(10)} == {0, 1, 2}


def test_the_same_seed_makes_the_same_rows(seed):
    record = read_schema(quickstart("users_").schema)
    one, other = RowGenerator(record, seed), RowGenerator(record, seed)
    assert [one.row() for _ in range(20)] == [other.row() for _ in range(20)]


def test_a_schema_of_ones_own_with_comments(tmp_path, seed):
    file = tmp_path / "own.avro"
    file.write_text(
        '{"type": "record", "name": "own", "fields": [\n'
        "  // the number\n"
        '  {"name": "n", "type": {"type": "int", "arg.properties": {"iteration": {"start": 1}}}},\n'
        '  {"name": "url", "type": {"type": "string", "arg.properties": '
        '{"options": ["http://example.com"]}}}]}'
    )
    row = RowGenerator(read_schema(file), seed, tmp_path).row()
    assert row == {"n": 1, "url": "http://example.com"}
    assert shown(row) == "[ 1 | 'http://example.com' ]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not an Avro schema: not JSON"),
        ('"int"', "is not one of a record"),
        (json.dumps({"type": "record", "name": "r"}), "is not an Avro schema"),
        (
            '{"type": "record", "name": "r", "fields": [{"name": "next", "type": ["null", "r"]}]}',
            "has no columns: Cyclic",
        ),
    ],
)
def test_schemas_that_are_none(text, words, tmp_path):
    file = tmp_path / "s.avsc"
    file.write_text(text)
    with pytest.raises(HeadraceError) as told:
        columns_of(read_schema(file))
    assert words in str(told.value)


def test_fields_that_are_not_there():
    columns = columns_of(read_schema(quickstart("users").schema))
    with pytest.raises(HeadraceError, match="The key field 'id' does not exist"):
        check_fields(columns, "id", None)
    with pytest.raises(HeadraceError, match="must be a long, not STRING"):
        check_fields(columns, "userid", "gender")
    with pytest.raises(HeadraceError, match="There is no quickstart 'user'; there are click"):
        quickstart("user")
