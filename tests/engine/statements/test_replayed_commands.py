"""A command that counted once stays in the catalog, whatever has become of the world since."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headrace.catalog.command_log import Command
from headrace.engine.engine import Engine
from headrace.engine.statements.replay import Replay, source_from_json
from headrace.functions.extensions import load_extensions
from headrace.functions.registry import REGISTRY
from headrace.kafka.admin import Topic
from headrace.kafka.records import Record
from headrace.model.errors import HeadraceError
from headrace.model.requests import Request
from in_memory_service import COPY, ORDERS, Service, Topics, run


class Unreachable(Topics):
    """Kafka does not answer, or not this client."""

    def topics(self, include_internal=False):
        raise HeadraceError("Topic authorization failed.")

    def exists(self, name):
        raise HeadraceError("Timed out waiting for a node assignment.")

    describe = begin_offsets = end_offsets = exists


@pytest.fixture
def service(tmp_path):
    made = Service(tmp_path)
    yield made
    made.close()


@pytest.fixture
def shouting(tmp_path):
    """A function of a user's file, and a way to take it away and bring it back."""
    folder = tmp_path / "ext"
    folder.mkdir()
    (folder / "shouting.py").write_text(
        "from headrace.functions import udf\n\n@udf\ndef shout(text: str) -> str:\n"
        "    return text.upper()\n"
    )
    assert load_extensions(folder, REGISTRY) == []
    function = REGISTRY.get("SHOUT")

    class Shouting:
        def come(self):
            REGISTRY.add(function)

        def go(self):
            REGISTRY.remove("SHOUT")

    yield Shouting()
    if REGISTRY.kind("SHOUT") is not None:
        REGISTRY.remove("SHOUT")


def told(engine, text):
    return [entity.to_json() for entity in engine.execute(Request(text))]


def shape(catalog):
    return {s.name: replace(s, statement="") for s in catalog.sources()}


JOIN = "CREATE STREAM joined AS SELECT o.id, o.n FROM orders o JOIN others p ON o.id = p.id;"
OTHERS = (
    "CREATE TABLE others (id INT PRIMARY KEY, m INT) "
    "WITH (kafka_topic='others', value_format='JSON', partitions=1);"
)


def test_nothing_outside_is_asked_when_statements_are_replayed(service):
    a, _ = service.engines
    for text in (ORDERS, OTHERS, COPY, JOIN, "PAUSE CSAS_COPY_2;"):
        run(a, text)
    before = service.settled()[0]
    service.topics = Unreachable()
    again = service.start("c")
    after = service.settled()[-1]
    assert shape(after) == shape(before) and after.queries == before.queries
    assert [(q.id, q.paused) for q in again.queries] == [
        ("CSAS_COPY_2", True),
        ("CSAS_JOINED_3", False),
    ]


def test_a_topic_that_has_grown_does_not_undo_the_join_on_it(service):
    a, _ = service.engines
    for text in (ORDERS, OTHERS, JOIN, "CREATE STREAM onward AS SELECT * FROM joined;"):
        run(a, text)
    service.settled()
    service.topics.found["others"] = Topic("others", (1, 1, 1))
    service.start("c")
    for catalog in service.settled():
        assert list(shape(catalog)) == ["ORDERS", "OTHERS", "JOINED", "ONWARD"]
        assert list(catalog.queries) == ["CSAS_JOINED_2", "CSAS_ONWARD_3"]


LOUD = "CREATE STREAM loud AS SELECT id, shout(CAST(n AS STRING)) AS cry FROM orders;"
ECHO = "CREATE TABLE echo AS SELECT cry, COUNT(*) AS times FROM loud GROUP BY cry;"


def test_what_calls_a_function_that_is_gone_stays_known_and_says_so(service, shouting):
    a, _ = service.engines
    for text in (ORDERS, LOUD, ECHO, "INSERT INTO loud SELECT id, 'x' AS cry FROM orders;"):
        run(a, text)
    before = service.settled()[0]
    shouting.go()
    again = service.start("c")
    after = service.settled()[-1]
    assert shape(after) == shape(before) and after.queries == before.queries
    assert [q.id for q in again.queries] == ["CSAS_LOUD_1", "CTAS_ECHO_2", "INSERTQUERY_3"]

    (listed,) = told(again, "SHOW QUERIES;")
    loud = next(q for q in listed["queries"] if q["id"] == "CSAS_LOUD_1")
    assert loud["state"] == "DEGRADED" and loud["statusCount"] == {"DEGRADED": 1}
    assert loud["sinks"] == ["LOUD"] and loud["sinkKafkaTopics"] == ["LOUD"]
    (warning,) = [w["message"] for w in listed["warnings"] if "CSAS_LOUD_1" in w["message"]]
    assert "DEGRADED" in warning and "Can't find any functions with the name 'SHOUT'" in warning
    assert again.degraded()["CSAS_LOUD_1"] in warning

    (explained,) = told(again, "EXPLAIN CSAS_LOUD_1;")
    description = explained["queryDescription"]
    assert description["state"] == "DEGRADED" and description["sources"] == ["ORDERS"]
    assert "SHOUT" in description["queryErrors"][-1]["errorMessage"]
    (described,) = told(again, "DESCRIBE loud;")
    assert [f["name"] for f in described["sourceDescription"]["fields"]] == ["ID", "CRY"]
    assert any("CSAS_LOUD_1 is DEGRADED" in w["message"] for w in described["warnings"])

    # Statements about it are taken as ever, here and where the function is.
    assert "Cannot drop LOUD" in run(again, "DROP STREAM loud;")
    assert run(again, "TERMINATE INSERTQUERY_3;") == "Query terminated."
    assert run(again, "DROP TABLE echo;").endswith("was dropped.")
    assert run(again, "DROP STREAM loud;").endswith("was dropped.")
    for catalog in service.settled():
        assert list(shape(catalog)) == ["ORDERS"] and catalog.queries == {}


def test_a_function_that_is_back_is_found_at_the_next_try(service, shouting):
    run(service.engines[0], ORDERS)
    run(service.engines[0], LOUD)
    service.settled()
    shouting.go()
    again = service.start("c")
    service.settled()
    query = again.queries.get("CSAS_LOUD_1")
    with pytest.raises(HeadraceError, match="SHOUT"):
        query.prepare()
    shouting.come()
    query.prepare()
    assert query.planned.sources == ("ORDERS",)


def test_a_log_that_does_not_tell_what_a_statement_made_keeps_its_name(service, shouting):
    """Such as were written before commands did."""
    run(service.engines[0], ORDERS)
    run(service.engines[0], LOUD)
    run(service.engines[0], ECHO)
    service.settled()
    service.log.commands = [replace(c, creates=None) for c in service.log.commands]
    shouting.go()
    again = service.start("c")
    after = service.settled()[-1]
    assert list(shape(after)) == ["ORDERS", "LOUD", "ECHO"]
    assert [q.state.value for q in again.queries] == ["DEGRADED", "DEGRADED"]
    (described,) = told(again, "DESCRIBE loud;")
    assert described["sourceDescription"]["statement"] == LOUD
    assert "does not exist" not in json.dumps(described["warnings"])
    for text in ("DROP TABLE echo;", "DROP STREAM loud;"):
        assert run(again, text).endswith("was dropped.")


def test_a_statement_that_nobody_can_read_any_more_is_told(service):
    run(service.engines[0], ORDERS)
    service.settled()
    (command,) = service.log.commands
    service.log.commands.append(
        replace(command, id="stream/X/create", statement="MAKE STREAM x;", sequence=1, after=0)
    )
    again = service.start("c")
    service.settled()
    assert isinstance(again, Engine)
    (reason,) = again.degraded().values()
    assert "MAKE STREAM x;" in reason
    assert run(again, COPY) == "Created query with ID CSAS_COPY_2"


def test_a_replaced_query_that_is_planned_again_keeps_how_it_writes_single_fields(service):
    a, _ = service.engines
    doubled = "STREAM doubled {} AS SELECT id, n * 2 AS twice FROM orders;"
    run(a, ORDERS)
    run(a, f"CREATE {doubled.format('WITH (wrap_single_values=true)')}")
    run(a, f"CREATE OR REPLACE {doubled.format('')}")
    catalog = service.settled()[0]
    planned = Replay(service.log.commands[-1], {}).plan_query(catalog)
    assert planned.sink is not None
    assert planned.sink.value == catalog.source("DOUBLED").value
    assert planned.sink.value.wrap is True


def test_the_name_of_a_query_does_not_say_that_it_made_its_sink(service):
    """A user may call an INSERT INTO what he likes: it holds the stream it writes to."""
    a, _ = service.engines
    for text in (ORDERS, COPY):
        run(a, text)
    run(a, "INSERT INTO copy WITH (query_id='CSAS_mine') SELECT * FROM orders;")
    service.start("c")
    for catalog in service.settled():
        made = {q.id: q.creates_sink for q in catalog.queries.values()}
        assert made == {"CSAS_COPY_1": True, "CSAS_MINE": False}
    assert "write into this source: [CSAS_MINE]" in run(a, "DROP STREAM copy;")


def test_a_query_that_cannot_be_planned_any_more_still_goes_with_its_sink(service, shouting):
    a, _ = service.engines
    for text in (ORDERS, LOUD):
        run(a, text)
    service.settled()
    shouting.go()
    again = service.start("c")
    kept = service.settled()[-1].queries["CSAS_LOUD_1"]
    assert kept.creates_sink
    run(again, "DROP STREAM loud;")
    assert all(catalog.source("LOUD") is None for catalog in service.settled())
    assert all(not catalog.queries for catalog in service.settled())


@pytest.mark.parametrize(
    "made",
    [
        "CREATE STREAM s (`k 1` STRUCT<a INT, `b c` ARRAY<STRING>> KEY, d DECIMAL(5, 2), t TIME,"
        " m MAP<STRING, STRUCT<x DOUBLE, y BYTES>>, h BYTES HEADER('trace')) WITH ("
        "kafka_topic='orders', key_format='JSON', value_format='JSON');",
        "CREATE STREAM s (id BIGINT KEY, said STRING, hs ARRAY<STRUCT<key STRING, value BYTES>> "
        "HEADERS) WITH (kafka_topic='orders', format='JSON', wrap_single_value=false, "
        "timestamp='said', timestamp_format='yyyy-MM-dd');",
        "CREATE SOURCE TABLE s (id INT PRIMARY KEY, d DATE, ts TIMESTAMP) WITH ("
        "kafka_topic='orders', value_format='JSON', window_type='TUMBLING', "
        "window_size='5 SECONDS');",
        "CREATE TABLE s AS SELECT id, COUNT(*) AS c FROM orders WINDOW SESSION (3 MINUTES) "
        "GROUP BY id;",
    ],
)
def test_a_command_tells_all_that_is_known_of_what_it_made(service, made):
    run(service.engines[0], ORDERS)
    answer = run(service.engines[0], made)
    before = service.settled()[0].source("S")
    assert before is not None, answer
    command = Command.from_record(
        Record("log", 0, 1, 0, b"stream/S/create", service.log.commands[1].to_bytes())
    )
    assert command.creates is not None
    assert source_from_json(command.creates, before.statement) == before
