"""Both clients against a real server with a fake engine."""

import asyncio
import socket
import time
from datetime import date, datetime
from decimal import Decimal

import pytest

from fake_engine import FakeQuery
from headrace.client import (
    AsyncClient,
    Client,
    ConnectionFailed,
    InsertFailed,
    QueryFailed,
    RequestFailed,
    ResultColumn,
    StatementFailed,
)
from headrace.client.rows import parse_schema
from headrace.client.wire import row_text
from headrace.model.errors import HeadraceError
from headrace.model.requests import QueryKind, ResultRow


@pytest.fixture
def engine(server):
    server[0].requests.clear()
    return server[0]


@pytest.fixture
def client(server):
    with Client(server[1], properties={"p": "1"}, variables={"v": "2"}) as client:
        yield client


def wait_until(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_execute(client, engine):
    (entity,) = client.execute("SHOW STREAMS;", properties={"q": "3"}, after=4)
    assert entity["@type"] == "streams"
    (asked,) = engine.requests
    assert asked.properties == {"p": "1", "q": "3"}
    assert asked.variables == {"v": "2"}
    assert asked.after_command == 4


def test_what_is_there(client, engine):
    assert [s["name"] for s in client.streams()] == ["S"]
    assert [t["name"] for t in client.tables()] == ["T"]
    assert [q["id"] for q in client.queries()] == ["CTAS_T_1"]
    assert [f["name"] for f in client.functions()] == ["ABS"]
    assert client.describe("S", extended=True)["fields"][0]["name"] == "ID"
    assert engine.requests[-1].text == "DESCRIBE S EXTENDED;"
    assert client.info()["ksqlServiceId"] == "default_"
    assert client.health()["isHealthy"]
    assert client.command_status("stream/S/create")["status"] == "SUCCESS"


def test_statement_errors_are_typed(client, engine):
    with pytest.raises(StatementFailed, match="NO_SUCH does not exist") as caught:
        client.execute("DROP STREAM NO_SUCH;")
    assert caught.value.error_code == 40001
    assert caught.value.statement == "DROP STREAM NO_SUCH;"
    assert caught.value.entities[0]["@type"] == "warning_entity"
    with pytest.raises(StatementFailed):
        client.stream("SELECT * FROM NO_SUCH;")
    with pytest.raises(RequestFailed, match="cannot be overridden"):
        client.check_property("ksql.service.id")


def test_unreachable_server():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client:
        for call in (client.info, client.health, lambda: client.stream("SELECT 1;")):
            with pytest.raises(ConnectionFailed, match="Cannot reach the server"):
                call()
    with pytest.raises(ConnectionFailed):
        Client("not a url").info()


def test_pull(client, engine):
    first, second = client.pull("SELECT * FROM T;")
    assert first["PRICE"] == Decimal("1.50")
    assert (first[0], first["N"], type(first["X"])) == ("a", 1, float)
    assert second.as_dict() == {"ID": "b", "N": 2, "PRICE": None, "X": "NaN"}
    assert first.columns[0] == ResultColumn("ID", "STRING", is_key=True)


def test_stream_ends_with_its_limit(client, engine):
    with client.stream("SELECT * FROM S EMIT CHANGES LIMIT 2;") as rows:
        assert [c.type for c in rows.columns] == ["STRING", "BIGINT", "DECIMAL(6, 2)", "DOUBLE"]
        assert [row["ID"] for row in rows] == ["a", "b"]
        assert rows.final_message == "Limit Reached"


def test_rows_come_at_once_and_leaving_ends_the_query(client, engine):
    with client.stream("SELECT * FROM S EMIT CHANGES;") as rows:
        query = engine.queries[rows.query_id]
        lines = iter(rows)
        next(lines), next(lines)
        started = time.monotonic()
        query.push("c", None, None, None, tombstone=True)
        row = next(lines)
        assert row.tombstone and row["ID"] == "c"
        assert time.monotonic() - started < 0.5
    wait_until(query.closed.is_set, 2)


def test_close_query(client, engine):
    with client.stream("SELECT * FROM S EMIT CHANGES;") as rows:
        client.close_query(rows.query_id)
        assert len(list(rows)) <= 2
    with pytest.raises(RequestFailed, match="No query with id"):
        client.close_query("nope")


def test_failing_query(client, engine):
    with client.stream("SELECT * FROM S EMIT CHANGES;") as rows:
        engine.queries[rows.query_id].fail(HeadraceError("it broke"))
        with pytest.raises(QueryFailed, match="it broke"):
            list(rows)


def test_print(client, engine):
    with client.print_topic("PRINT s;") as lines:
        assert list(lines) == ["Key format: KAFKA_STRING", "rowtime: …, key: a, value: 1"]


def test_inserts(client, engine):
    client.insert("S", {"ID": "x", "PRICE": Decimal("1.10")})
    assert engine.inserters[-1].rows == [{"ID": "x", "PRICE": Decimal("1.10")}]
    with pytest.raises(InsertFailed) as caught:
        client.insert("S", {"BAD": 1})
    assert caught.value.sequence == 0
    with pytest.raises(StatementFailed):
        client.insert("NO_SUCH", {"ID": 1})


def test_many_inserts_keep_their_order(client, engine):
    acks = list(client.insert_stream("S", ({"ID": str(n)} for n in range(4500))))
    assert [ack.sequence for ack in acks] == list(range(4500))
    assert not any(ack.error for ack in acks)
    assert list(client.insert_stream("S", [])) == []


def test_values_of_rows():
    row = {"a": [b"\x01", None], "d": date(2020, 1, 2), "t": datetime(2020, 1, 2, 3, 4, 5)}
    assert row_text(row) == '{"a":["AQ==",null],"d":"2020-01-02","t":"2020-01-02T03:04:05"}'


def test_schema_texts():
    text = "`A``,B` ARRAY<STRUCT<`x, y` INTEGER, `z` DECIMAL(4, 2)>>, `K` MAP<STRING, BIGINT> KEY"
    first, second = parse_schema(text)
    assert (first.name, second.name) == ("A`,B", "K")
    assert first.type == "ARRAY<STRUCT<`x, y` INTEGER, `z` DECIMAL(4, 2)>>"
    assert second == ResultColumn("K", "MAP<STRING, BIGINT>", is_key=True)
    assert parse_schema("") == ()


def test_async_client(server):
    engine, url = server

    async def use():
        async with AsyncClient(url, variables={"v": "2"}) as client:
            assert [s["name"] for s in await client.streams()] == ["S"]
            assert [t["name"] for t in await client.tables()] == ["T"]
            assert (await client.describe("S"))["topic"] == "s"
            assert (await client.info())["version"]
            assert (await client.health())["isHealthy"]
            assert [r["ID"] for r in await client.pull("SELECT * FROM T;")] == ["a", "b"]
            with pytest.raises(StatementFailed):
                await client.execute("DROP STREAM NO_SUCH;")
            with pytest.raises(StatementFailed):
                await client.stream("SELECT * FROM NO_SUCH;")
            async with await client.stream("SELECT * FROM S EMIT CHANGES;") as rows:
                query = engine.queries[rows.query_id]
                seen = []
                async for row in rows:
                    seen.append(row["ID"])
                    if len(seen) == 2:
                        break
            assert seen == ["a", "b"]
            async with await client.print_topic("PRINT s;") as lines:
                assert len([line async for line in lines]) == 2
            await client.insert("S", {"ID": "x"})
            acks = [ack async for ack in client.insert_stream("S", [{"ID": "y"}, {"BAD": 1}])]
            assert [ack.error is None for ack in acks] == [True, False]
            with pytest.raises(InsertFailed):
                await client.insert("S", {"BAD": 1})
            return query

    query = asyncio.run(use())
    assert query.closed.wait(2)


def test_twenty_streams_at_once(server):
    engine, url = server

    async def use():
        async with AsyncClient(url) as client:
            streams = await asyncio.gather(
                *[client.stream("SELECT * FROM S EMIT CHANGES;") for _ in range(20)]
            )
            for rows in streams:
                engine.queries[rows.query_id].push("z", 1, None, None)

            async def until_z(rows):
                async for row in rows:
                    if row["ID"] == "z":
                        break
                await rows.close()

            await asyncio.wait_for(asyncio.gather(*map(until_z, streams)), 20)

    asyncio.run(use())


def test_a_stream_goes_on_from_a_token(client, server, engine, monkeypatch):
    asked = []

    def query(request):
        asked.append(request)
        values = ("a", 1, None, 0.5)
        rows = [ResultRow(values), ResultRow((), token="later"), ResultRow(values)]
        return FakeQuery("q", QueryKind.PUSH, rows)

    monkeypatch.setattr(engine, "query", query)
    with client.stream("SELECT * FROM S EMIT CHANGES;", continuation="earlier") as rows:
        assert len(list(rows)) == 2
        assert rows.continuation == "later"
    (request,) = asked
    assert request.continuation == "earlier"

    async def read():
        async with (
            AsyncClient(server[1]) as client,
            await client.stream("SELECT 1 EMIT CHANGES;") as rows,
        ):
            return len([row async for row in rows]), rows.continuation

    assert asyncio.run(read()) == (2, "later")
    assert asked[1].continuation is None
