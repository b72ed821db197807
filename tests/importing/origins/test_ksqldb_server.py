"""A running ksqlDB, read by its REST API; what breaks off in the middle gives nothing at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fake_ksqldb import ANSWERS, ends_at, ksqldb
from headrace.client import Client
from headrace.importing.assessment import Verdict, assess
from headrace.importing.origins.ksqldb_server import read_server
from headrace.importing.recorded import History, Recorded, Unreadable
from headrace.model.errors import HeadraceError


@pytest.fixture
def history() -> Iterator[History]:
    with ksqldb(ANSWERS.__getitem__) as client:
        yield read_server(client)


def test_what_it_has_in_order(history: History) -> None:
    places = [entry.place for entry in history.entries]
    assert places == [
        "type PLACE",
        "stream ORDERS",
        "stream OLD",
        "stream GREW",
        "stream BIG",
        "table SUMS",
        "query INSERTQUERY_9",
    ]
    (grew,) = (e for e in history.entries if isinstance(e, Unreadable))
    assert "import from there (--command-topic)" in grew.reason
    by_place = {e.place: e for e in history.entries if isinstance(e, Recorded)}
    assert by_place["type PLACE"].text == (
        "CREATE TYPE `PLACE` AS STRUCT<`CITY` STRING, `AT` ARRAY<STRING>, `FEE` DECIMAL(4, 2)>;"
    )
    assert by_place["stream BIG"].group == "_confluent-ksql-shop_query_CSAS_BIG_5"
    assert by_place["stream BIG"].session == {"auto.offset.reset": "earliest"}
    assert by_place["table SUMS"].paused
    assert by_place["stream OLD"].ended  # its query was terminated


def test_what_becomes_of_it(history: History) -> None:
    found = assess(history)
    verdicts = {item.title: item.verdict for item in found.items}
    assert verdicts == {
        "stream GREW": Verdict.CANNOT,
        "type PLACE": Verdict.AS_IS,
        "stream ORDERS": Verdict.AS_IS,
        "stream OLD": Verdict.DIFFERS,
        "stream BIG (query CSAS_BIG_5)": Verdict.CANNOT,
        "table SUMS (query CTAS_SUMS_7)": Verdict.DIFFERS,
        "insert into OLD (query INSERTQUERY_9)": Verdict.AS_IS,
    }
    (function,) = found.functions
    assert function.name == "NEAREST" and '@udf("(x DOUBLE) -> STRING")' in function.stub()


@pytest.mark.parametrize("last", ["SHOW TABLES EXTENDED;", "SHOW QUERIES EXTENDED;"])
def test_a_ksqldb_that_ends_in_the_middle(last: str) -> None:
    with (
        ksqldb(ends_at(last)) as client,
        pytest.raises(HeadraceError, match="could not be read to the end, so that nothing was"),
    ):
        read_server(client)


def test_what_is_no_ksqldb() -> None:
    with (
        ksqldb(lambda statement: {"hello": 1}) as client,
        pytest.raises(HeadraceError, match="is not ksqlDB, or one of another kind"),
    ):
        read_server(client)


def test_nobody_there() -> None:
    with (
        Client("http://127.0.0.1:1") as client,
        pytest.raises(HeadraceError, match="nothing was imported: Cannot reach the server"),
    ):
        read_server(client)
