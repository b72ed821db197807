"""Two engines on one command log, which is pretended, as are the topics; neither runs queries."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.catalog.command_log import OutcomeUnknownError
from headrace.model.errors import HeadraceError
from headrace.model.requests import Request
from in_memory_service import COPY, ORDERS, Service, run


@pytest.fixture
def service(tmp_path):
    made = Service(tmp_path)
    yield made
    made.close()


def test_what_one_is_told_the_other_knows(service):
    a, b = service.engines
    assert run(a, ORDERS) == "Stream created"
    assert run(b, COPY) == "Created query with ID CSAS_COPY_1"
    for catalog in service.settled():
        assert [s.name for s in catalog.sources()] == ["ORDERS", "COPY"]
    assert [q.id for q in a.queries] == [q.id for q in b.queries] == ["CSAS_COPY_1"]
    assert a.command_status("stream/COPY/create") == b.command_status("stream/COPY/create")
    run(a, "PAUSE CSAS_COPY_1;")
    service.settled()
    assert [q.paused for q in b.queries] == [True]
    run(b, "TERMINATE CSAS_COPY_1;")
    service.settled()
    assert list(a.queries) == list(b.queries) == []


def test_who_comes_second_is_planned_anew_and_gets_the_number_of_its_place(service):
    a, b = service.engines
    run(a, ORDERS)
    service.log.meanwhile = lambda: run(b, "CREATE TYPE t AS STRUCT<x INT>;")
    assert run(a, COPY) == "Created query with ID CSAS_COPY_3"
    assert service.counted() == [True, True, False, True]
    one, other = service.settled()
    assert one.queries == other.queries and one.type("T") == other.type("T") is not None


def test_who_comes_second_is_planned_with_the_settings_of_who_came_first(service):
    a, b = service.engines
    run(a, ORDERS)
    name = "ksql.streams.auto.offset.reset"
    assert service.log.commands[-1].settings[name] == "latest"
    service.log.meanwhile = lambda: run(b, "ALTER SYSTEM 'auto.offset.reset'='earliest';")
    run(a, COPY)
    assert service.counted() == [True, True, False, True]
    assert [c.settings[name] for c in service.log.commands[2:]] == ["latest", "earliest"]


def test_who_comes_second_is_refused_if_it_does_not_fit_any_more(service):
    a, b = service.engines
    run(a, ORDERS)
    service.log.meanwhile = lambda: run(b, "DROP STREAM orders;")
    assert "ORDERS does not exist" in run(a, COPY)
    assert service.topics.deleted == ["COPY"]  # a rejected statement leaves nothing behind
    for catalog in service.settled():
        assert list(catalog.sources()) == []


def test_the_topic_of_who_was_faster_stays(service):
    a, b = service.engines
    run(a, ORDERS)
    service.log.meanwhile = lambda: run(b, COPY)
    assert "A stream with the same name already exists" in run(a, COPY)
    assert service.topics.deleted == []
    assert service.counted() == [True, True, False]


def test_a_crowd_of_statements_that_exclude_each_other(service):
    run(service.engines[0], ORDERS)

    def create(i):
        return run(service.engines[i % 2], f"CREATE STREAM s{i // 4} AS SELECT * FROM orders;")

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(create, range(24)))
    made = [text for text in answers if text.startswith("Created query")]
    assert len(made) == 6, answers
    assert all("already exists" in text for text in answers if text not in made)
    one, other = service.settled()
    assert one.queries == other.queries and len(one.queries) == 6
    assert set(one.queries) == {text.split()[-1] for text in made}


def test_what_only_one_server_does_is_not_done_here(service):
    a, b = service.engines
    run(a, ORDERS)
    run(b, COPY)
    assert "was dropped" in run(a, "DROP STREAM copy DELETE TOPIC;")
    assert service.topics.deleted == []
    service.settled()
    assert list(b.queries) == []


def test_the_end_of_the_service_is_the_end_for_all(service):
    a, b = service.engines
    run(a, ORDERS)
    a.terminate_cluster([])
    service.settled()
    assert run(b, COPY) == run(a, COPY) == "The server is already shut down"
    assert list(b.catalog.sources()) == []


def test_what_was_made_for_a_command_of_unknown_outcome_stays(service):
    a, _ = service.engines
    run(a, ORDERS)
    append = service.log.append

    def lose_the_acknowledgement(command):
        append(command)
        raise OutcomeUnknownError("Kafka does not answer. The statement may still count")

    service.log.append = lose_the_acknowledgement
    assert "may still count" in run(a, COPY)
    service.log.append = append
    assert service.topics.deleted == []
    for catalog in service.settled():
        assert [s.name for s in catalog.sources()] == ["ORDERS", "COPY"]


# --------------------------------------------------------------------------------- warnings

BARE = "STREAM s (k INT KEY, v INT) WITH (kafka_topic='orders', value_format='JSON'{});"


def test_an_answer_bears_the_warnings(service):
    first, _ = service.engines
    [answer] = first.execute(Request(f"CREATE {BARE.format(', wrap_single_fields=true')}"))
    [warning] = answer.to_json()["warnings"]
    assert "has no effect on the keys of S: format KAFKA" in warning["message"]


def test_a_topic_with_records_keeps_their_form(service):
    first, _ = service.engines
    first.execute(Request(f"CREATE {BARE.format('')}"))
    service.topics.end_offsets = lambda name: {0: 3}
    wrapped = f"CREATE OR REPLACE {BARE.format(', wrap_single_values=true')}"
    with pytest.raises(HeadraceError, match="while its topic 'orders' has records"):
        first.execute(Request(wrapped))
    service.topics.end_offsets = service.topics.begin_offsets
    first.execute(Request(wrapped))
    service.topics.end_offsets = lambda name: {0: 3}  # whoever reads the log later asks no more
    assert [catalog.source("S").value.wrap for catalog in service.settled()] == [True, True]


def test_a_server_is_ready_once_queries_run_somewhere(service, monkeypatch):
    """As a follower, when another server runs them; else when it has started each itself."""
    a, _ = service.engines
    a.execute(Request("CREATE STREAM o (x INT) WITH (kafka_topic='orders', value_format='JSON');"))
    a.execute(Request("CREATE STREAM p AS SELECT * FROM o;"))
    assert not a.is_ready()  # nobody runs it
    monkeypatch.setattr(a.heartbeat, "holding", lambda: "another", raising=False)
    assert a.is_ready()
    monkeypatch.setattr(a.heartbeat, "holds", lambda: True, raising=False)
    assert not a.is_ready()  # it has just become this server's task
    a.queries.active = True
    (query,) = a.queries
    assert not a.is_ready()  # not started yet
    query.retry_at = time.monotonic()
    assert a.is_ready()  # it failed: somebody has to be able to mend it
    query.retry_at, query.streaming = None, object()
    assert a.is_ready()
    query.streaming = None
    a.queries.active = False
    a.commands.terminated = True
    assert not a.is_ready()
