"""Settings that change what a statement means: they hold when it is planned, and when it is
planned again."""

from __future__ import annotations

import pytest

from headrace.engine.statements.replay import Replay
from headrace.engine.statements.request_session import setting_texts
from headrace.model.requests import Request
from headrace.plan.language.expressions import Cast
from headrace.plan.nodes import Project
from in_memory_service import COPY, ORDERS, Service, run

REPLACED = "CREATE OR REPLACE STREAM copy AS SELECT id, n, n + 1 AS m FROM orders;"
FORBID = "SET 'ksql.create.or.replace.enabled'='false';"
EXISTS = "Cannot add stream 'COPY': A stream with the same name already exists"


@pytest.fixture
def service(tmp_path):
    made = Service(tmp_path, "a")
    yield made
    made.close()


def test_a_query_is_replaced_unless_the_setting_says_no(service):
    (engine,) = service.engines
    run(engine, ORDERS)
    run(engine, COPY)
    assert run(engine, FORBID + REPLACED) == EXISTS
    assert run(engine, REPLACED) == "Created query with ID CSAS_COPY_1"


def test_what_has_no_query_is_replaced_in_any_case(service):
    (engine,) = service.engines
    run(engine, FORBID + ORDERS.replace("CREATE", "CREATE OR REPLACE"))
    assert run(engine, FORBID + ORDERS.replace("CREATE", "CREATE OR REPLACE")) == "Stream created"
    assert run(engine, FORBID + COPY.replace("CREATE", "CREATE OR REPLACE")).startswith("Created")
    run(engine, "TERMINATE CSAS_COPY_2;")
    assert run(engine, FORBID + REPLACED) == "Created query with ID CSAS_COPY_4"


def test_a_query_that_was_replaced_stays_so_on_a_server_that_would_refuse_it(tmp_path):
    service = Service(tmp_path, "a")
    (engine,) = service.engines
    for text in (ORDERS, COPY, REPLACED):
        run(engine, text)
    later = Service(tmp_path, "", **{"ksql.create.or.replace.enabled": "false"})
    later.log = service.log
    replayed = later.start("b")
    later.settled()
    assert [c.name for c in replayed.catalog.source("COPY").schema] == ["ID", "N", "M"]
    assert run(replayed, REPLACED) == EXISTS
    later.close()
    service.close()


@pytest.mark.parametrize(("keeps", "null_text"), [("true", False), ("false", True)])
def test_a_cast_to_string_knows_whether_null_becomes_a_text(service, keeps, null_text):
    (engine,) = service.engines
    run(engine, ORDERS)
    setting = {"ksql.cast.strings.preserve.nulls": keeps}
    text = "CREATE STREAM texts AS SELECT id, CAST(n AS STRING) AS t FROM orders;"
    engine.execute(Request(text, properties=setting))
    assert _casts(service.log.commands[-1], engine) == [null_text]


def _casts(command, engine):
    """What its casts do with null, planned from the command alone."""
    node = Replay(command, setting_texts(command.settings)).plan_query(engine.catalog).node
    while not isinstance(node, Project):
        node = node.input
    return [s.expression.null_text for s in node.selected if isinstance(s.expression, Cast)]
