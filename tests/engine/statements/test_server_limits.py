"""What a server's own settings keep clients from: more queries than it may have, and settings that
are not theirs to change."""

from __future__ import annotations

import pytest

from headrace.engine.environment import Environment
from headrace.engine.queries.program import _of_functions
from headrace.kafka.client import KafkaConnection
from headrace.model.errors import HeadraceError
from headrace.model.requests import Request
from headrace.model.settings import Settings
from in_memory_service import COPY, ORDERS, Service, run

LIMIT = "ksql.query.persistent.active.limit"
LISTS = "ksql.properties.overrides."
MORE = "CREATE STREAM more AS SELECT id, n FROM orders;"
FINAL = (
    "CREATE TABLE counts AS SELECT n, COUNT(*) FROM orders WINDOW TUMBLING (SIZE 1 HOUR) "
    "GROUP BY n EMIT FINAL;"
)


@pytest.fixture
def engine_with(tmp_path):
    made = []

    def start(**settings):
        service = Service(tmp_path, "a", **settings)
        made.append(service)
        (engine,) = service.engines
        run(engine, ORDERS)
        return engine

    yield start
    for service in made:
        service.close()


def test_a_query_beyond_the_limit_is_refused(engine_with):
    engine = engine_with(**{LIMIT: "1"})
    assert run(engine, COPY) == "Created query with ID CSAS_COPY_1"
    assert run(engine, MORE) == (
        f"Not executing statement(s) '{MORE}' as it would cause the number of active, persistent "
        "queries to exceed the configured limit. Use the TERMINATE command to terminate existing "
        f"queries, or increase the '{LIMIT}' setting via the 'ksql-server.properties' file. "
        "Current persistent query count: 2. Configured limit: 1."
    )
    assert [s.name for s in engine.catalog.sources()] == ["ORDERS", "COPY"]
    replaced = COPY.replace("CREATE", "CREATE OR REPLACE").replace("*", "*, n AS m")
    assert run(engine, replaced) == "Created query with ID CSAS_COPY_1"  # that is no more
    run(engine, "TERMINATE CSAS_COPY_1;")
    assert run(engine, MORE).startswith("Created query")


def test_a_request_of_several_statements_is_refused_before_the_first(engine_with):
    engine = engine_with(**{LIMIT: "1"})
    with pytest.raises(HeadraceError, match="Configured limit: 1"):
        engine.execute(Request(COPY + MORE))
    assert [s.name for s in engine.catalog.sources()] == ["ORDERS"]


def test_the_limit_is_not_about_what_the_log_holds_nor_about_the_servers_own_file(tmp_path):
    before = Service(tmp_path, "a")
    for text in (ORDERS, COPY, MORE):
        run(before.engines[0], text)
    later = Service(tmp_path, "", **{LIMIT: "1"})
    later.log, later.topics = before.log, before.topics
    later.start("b")
    (catalog,) = later.settled()
    assert len(catalog.queries) == 2
    own = Service(tmp_path, "c", **{LIMIT: "1", "ksql.queries.file": "f.sql"})
    for text in (ORDERS, COPY):
        run(own.engines[0], text)
    assert run(own.engines[0], MORE).startswith("Created query")
    for service in (before, later, own):
        service.close()


DENIED = "One or more properties overrides set locally are prohibited by the KSQL server denylist"
NOT_ALLOWED = (
    "One or more property overrides set locally are not permitted by the KSQL server allowlist"
)
RESET = "auto.offset.reset"


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({f"{LISTS}denylist": "ksql.streams.auto.offset.reset, x"}, DENIED),
        ({f"{LISTS}denylist": RESET}, DENIED),
        ({f"{LISTS}validation.mode": "allowlist"}, NOT_ALLOWED),
        (
            {
                f"{LISTS}validation.mode": "ALLOWLIST",
                f"{LISTS}allowlist": "ksql.output.topic.name.prefix",
            },
            NOT_ALLOWED,
        ),
    ],
)
@pytest.mark.parametrize("name", [RESET, f"ksql.streams.{RESET}"])
def test_what_clients_may_not_change(engine_with, settings, refusal, name):
    engine = engine_with(**settings)
    told = f"{refusal} (use UNSET to reset their default value): [{name}]"
    assert run(engine, f"SET '{name}'='earliest'; SHOW STREAMS;") == told
    with pytest.raises(HeadraceError) as refused:
        engine.execute(Request("SHOW STREAMS;", {name: "earliest"}))
    assert str(refused.value) == told
    with pytest.raises(HeadraceError) as refused:
        engine.check_property(name)
    assert str(refused.value) == told


def test_what_is_on_the_list_of_allowed_ones(engine_with):
    engine = engine_with(**{f"{LISTS}validation.mode": "allowlist", f"{LISTS}allowlist": RESET})
    engine.execute(Request("SHOW STREAMS;", {f"ksql.streams.{RESET}": "earliest"}))
    engine.check_property(RESET)


def test_what_is_not_on_the_list_of_denied_ones(engine_with):
    engine = engine_with(**{f"{LISTS}denylist": RESET})
    engine.execute(Request("SHOW STREAMS;", {"ksql.output.topic.name.prefix": "x"}))


def test_the_lists_themselves_are_the_servers(engine_with):
    engine = engine_with()
    for name in ("denylist", "allowlist", "validation.mode"):
        assert "It is the server's" in run(engine, f"SET '{LISTS}{name}'='';")


def test_emit_final_unless_the_setting_says_no(engine_with):
    disabled = (
        "Suppression is currently disabled. You can enable it by setting ksql.suppress.enabled to "
        "true"
    )
    engine = engine_with()
    assert run(engine, f"SET 'ksql.suppress.enabled'='false'; {FINAL}") == disabled
    assert run(engine_with(**{"ksql.suppress.enabled": "false"}), FINAL) == disabled
    assert run(engine, FINAL).startswith("Created query")


OWN = {"ksql.streams.producer.compression.type": "lz4"}
SNAPPY = {"compression.type": "snappy"}


@pytest.mark.parametrize(
    ("server", "query", "expected"),
    [({}, {}, None), (SNAPPY, {}, "snappy"), (SNAPPY, OWN, "lz4"), (OWN, {}, "lz4")],
)
def test_how_a_query_compresses_what_it_writes(tmp_path, server, query, expected):
    settings = Settings(server)
    kafka = KafkaConnection({"bootstrap.servers": "127.0.0.1:1", **settings.client()})
    env = Environment(settings, kafka, None, None, None, str(tmp_path), tmp_path)
    assert env.producer_settings(Settings(server, query)).get("compression.type") == expected


def test_what_functions_are_told():
    told = _of_functions(Settings({"ksql.functions.f.base": "7", "ksql.service.id": "x"}))
    assert told == {
        "ksql.functions.f.base": "7",
        "ksql.functions.collect_list.limit": None,
        "ksql.functions.collect_set.limit": None,
        "ksql.functions.substring.legacy.args": False,
    }
