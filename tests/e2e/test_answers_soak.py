"""What is opened is closed, and what is kept does not grow, in short; `make test-soak` is long."""

from __future__ import annotations

import os
import random
import threading

import pytest

from headrace.client import Client
from ordinary_use import OrdinaryUse
from process_resources import event_polls, open_files, threads_named
from stalled_clients import growth_by_stalled_clients

pytestmark = pytest.mark.heavy


def test_careless_clients_leave_nothing(server):
    from careless_clients import prepare, soak

    with Client(server.url) as client:
        prepare(client)
    count, before, after = soak(server, seconds=10, connections=200)
    assert count > 500
    assert (after.pushes, after.streaming) == (0, before.streaming)
    # Pools grow to their size, each thread with a way into the JVM (75 at most): what leaked would
    # be as many as there were connections.
    assert after.threads <= before.threads + 60
    assert after.jvm_threads <= before.jvm_threads + 75
    assert after.files <= before.files + 150
    assert after.megabytes <= before.megabytes + 150


def test_push_queries_that_had_rows_hang_up(scene):
    """Spark calls Python on a connection of its own for each query."""
    scene.topic("hung_up")
    scene.sql("CREATE STREAM HUNG_UP (N INT) WITH (KAFKA_TOPIC='hung_up', VALUE_FORMAT='JSON');")
    scene.sql("INSERT INTO HUNG_UP VALUES (1);")

    def visits(count):
        for _ in range(count):
            assert scene.push("SELECT N FROM HUNG_UP EMIT CHANGES;", 1) == [(1,)]

    def called():
        return [t.name for t in threading.enumerate() if t.name.endswith("(run)")]

    # Java's thread that collects what queries left behind has a line of its own.
    visits(2)
    scene.wait(lambda: len(called()), lambda count: count <= 2)
    visits(6)
    scene.wait(lambda: len(called()), lambda count: count <= 2)


def test_push_queries_leave_no_open_files(scene):
    """Neither in Python nor in Spark's JVM, read to the end or left; pull queries do not either."""
    scene.topic("looked_at", partitions=2)
    scene.sql(
        "CREATE STREAM LOOKED_AT (ID STRING KEY, N INT) "
        "WITH (KAFKA_TOPIC='looked_at', VALUE_FORMAT='JSON');"
        + "".join(f"INSERT INTO LOOKED_AT VALUES ('k{i}', {i});" for i in range(10))
    )

    def look(times):
        for _ in range(times):
            assert len(scene.push("SELECT * FROM LOOKED_AT EMIT CHANGES LIMIT 3;", 3)) == 3
            assert len(scene.push("SELECT N FROM LOOKED_AT EMIT CHANGES;", 3)) == 3
            assert len(scene.pull("SELECT * FROM LOOKED_AT LIMIT 2;")) == 2
        return open_files(os.getpid())

    before = look(3)
    # Each had left four files for each partition.
    scene.wait(lambda: look(8), lambda after: after <= before + 10, patience=30)


def test_push_queries_with_state_leave_nothing_open(scene):
    """Spark starts a Python process for each. It had left a selector, which is three open files,
    and a thread. (RocksDB's files of a query stay for a minute.)"""
    scene.topic("counted", partitions=2)
    scene.sql(
        "CREATE STREAM COUNTED (ID STRING KEY, N INT) "
        "WITH (KAFKA_TOPIC='counted', VALUE_FORMAT='JSON');"
        + "".join(f"INSERT INTO COUNTED VALUES ('k{i}', {i});" for i in range(10))
    )
    counts = "SELECT ID, COUNT(*) FROM COUNTED GROUP BY ID EMIT CHANGES LIMIT 3;"

    def look(times):
        for _ in range(times):
            assert len(scene.push(counts, 3)) == 3
        server = os.getpid()
        return event_polls(server), threads_named(server, "Idle Worker Monitor")

    polls, threads = look(3)
    after = look(12)
    print(f"selectors: {polls}, then {after[0]}; threads: {threads}, then {after[1]}")
    assert after[0] <= polls + 4 and after[1] <= threads + 1


def test_an_ordinary_evening_in_brief(scene):
    """Files of the server and of Spark's JVM do not grow with time, once all is warm."""
    seed = int(os.environ.get("SEED", random.randrange(10**6)))
    print(f"SEED={seed}")
    use = OrdinaryUse(scene, seed)
    use.prepare()
    with use.going_on():
        use.await_rounds(5)
        before = open_files(os.getpid())
        use.await_rounds(12)
        after = open_files(os.getpid())
    assert not use.failures, use.failures
    assert after <= before + 30  # it had been one or two for each second
    use.clean_up()


def test_clients_that_do_not_read_cost_little_memory(scene):
    """They had cost a gigabyte each; `make test-soak` has a hundred of them."""
    assert growth_by_stalled_clients(scene, os.getpid(), 300_000, 6, 90) <= 350
