"""Two servers of one service over one Kafka: any takes statements, one runs the queries."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from headrace.client import ClientError
from headrace.kafka.broker import EmbeddedBroker
from headrace.kafka.jars import ensure_jars
from headrace.kafka.ports import free_port
from headrace.kafka.records import NewRecord, RecordWriter
from scene import Scene
from server_process import ServerProcess, eventually

pytestmark = pytest.mark.heavy

KEYS = 10
TAKEOVER_SECONDS = 30


class Service:
    """Two servers, and what they were told to count."""

    def __init__(self, directory, kafka):
        self.directory = directory
        self.kafka = kafka
        self.written = 0
        self.servers: dict[str, ServerProcess] = {}
        self.scenes: dict[str, Scene] = {}

    def start(self, name):
        ports = (free_port(), free_port(), free_port())
        settings = {"state.dir": str(self.directory / "state")}
        self.servers[name] = ServerProcess(self.directory / name, ports, self.kafka, settings)

    def wait(self, name):
        self.scenes[name] = self.servers[name].scene()
        return self.scenes[name]

    def status(self, name):
        """By server, whether the one called `name` thinks it alive, and the queries it runs."""
        told = httpx.get(f"{self.servers[name].url}/clusterStatus").json()["clusterStatus"]
        names = {server.url.removeprefix("http://"): n for n, server in self.servers.items()}
        return {
            names.get(host, host): (
                host_told["hostAlive"],
                sorted(host_told["activeStandbyPerQuery"]),
            )
            for host, host_told in told.items()
        }

    def holder(self, seen_by):
        found = [n for n, (alive, ids) in self.status(seen_by).items() if alive and ids]
        return found[0] if len(found) == 1 else None

    def states(self, name):
        return {q["id"]: dict(q["statusCount"]) for q in self.scenes[name].client.queries()}

    def write(self, count):
        connection = next(iter(self.scenes.values())).kafka
        with RecordWriter(connection, linger_ms=50) as writer:
            writer.write_all(
                NewRecord("numbers", (i % KEYS).to_bytes(4, "big"), b'{"N":%d,"WORD":"w"}' % i)
                for i in range(self.written, self.written + count)
            )
        self.written += count

    def counted(self, name):
        rows = self.scenes[name].pull("SELECT id, counted, most FROM totals;")
        return sorted(rows)

    def expected(self):
        return [
            (key, len(range(key, self.written, KEYS)), max(range(key, self.written, KEYS)))
            for key in range(KEYS)
        ]

    def doubled(self, name):
        """All that is in the sink, whatever came twice."""
        reader = self.scenes[name]._reader
        return {json.loads(record.value)["TWICE"] for record in reader.read("DOUBLED")}

    def close(self):
        for server in self.servers.values():
            server.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    directory = tmp_path_factory.mktemp("several")
    with EmbeddedBroker(directory / "kafka", free_port(), ensure_jars(print)) as broker:
        made = Service(directory, broker.bootstrap_servers)
        try:
            made.start("a")
            made.start("b")
            made.wait("a")
            made.wait("b")
            yield made
        finally:
            made.close()


def other(name):
    return "b" if name == "a" else "a"


def test_a_statement_sent_to_any_server_is_executed_once_and_known_to_all(service):
    made = "CREATE STREAM numbers (id INT KEY, n INT, word STRING) WITH (kafka_topic='numbers', \
        value_format='JSON', partitions=2);"
    service.scenes["a"].sql(made)
    service.scenes["b"].sql(
        "CREATE STREAM doubled AS SELECT id, n * 2 AS twice, word FROM numbers EMIT CHANGES;"
    )
    service.scenes["a"].sql(
        "CREATE TABLE totals AS SELECT id, COUNT(*) AS counted, MAX(n) AS most FROM numbers "
        "GROUP BY id EMIT CHANGES;"
    )
    for name, scene in service.scenes.items():
        scene.wait(
            lambda scene=scene: {s["name"] for s in scene.client.streams()},
            lambda found: {"NUMBERS", "DOUBLED"} <= found,
        )
        scene.wait(
            lambda name=name: list(service.states(name).values()),
            lambda states: states == [{"RUNNING": 1}] * 2,
        )
        status = service.status(name)
        assert {n: alive for n, (alive, _) in status.items()} == {"a": True, "b": True}
        assert sorted(ids for _, ids in status.values())[0] == []
        assert httpx.get(f"{scene.url}/healthcheck").json()["isHealthy"] is True
    service.write(1000)
    scene = service.scenes["a"]
    scene.wait(lambda: service.counted("a"), lambda rows: rows == service.expected())
    assert service.counted("b") == service.expected()
    eventually(lambda: len(service.doubled("a")) == 1000)
    # Once: a second run of the query would have doubled the records, too.
    assert sum(scene.admin.end_offsets("DOUBLED").values()) == 1000


def test_control_statements_reach_the_server_that_runs_the_query(service):
    holder = service.holder("a")
    told = service.scenes[other(holder)]
    query = told.create("CREATE STREAM tripled AS SELECT id, n * 3 AS thrice, word FROM numbers;")
    assert service.states(holder)[query] == {"RUNNING": 1}
    told.sql(f"PAUSE {query};")
    eventually(lambda: service.states(holder)[query] == {"PAUSED": 1}, 10)
    told.wait(lambda: service.states(other(holder))[query], lambda state: state == {"PAUSED": 1})
    told.sql(f"RESUME {query};")
    eventually(lambda: service.states(other(holder))[query] == {"RUNNING": 1}, 10)
    told.sql(
        "CREATE OR REPLACE STREAM tripled AS SELECT id, n * 3 AS thrice, word, n FROM numbers;"
    )
    described = service.scenes[holder].client.describe("TRIPLED")
    assert [f["name"] for f in described["fields"]] == ["ID", "THRICE", "WORD", "N"]
    told.sql("DROP STREAM tripled DELETE TOPIC;")
    assert query not in service.states(holder) and query not in service.states(other(holder))
    assert not told.admin.exists("TRIPLED")


def test_of_statements_that_exclude_each_other_one_is_executed(service):
    def create(at):
        name, i = at
        text = f"CREATE STREAM same{i} AS SELECT id, n + {i} AS m FROM numbers;"
        try:
            return service.scenes[name].create(text)
        except ClientError as error:
            return str(error)

    asked = [(name, i) for i in range(3) for name in ("a", "b")]
    with ThreadPoolExecutor(len(asked)) as threads:
        answers = list(threads.map(create, asked))
    for i in range(3):
        made, refused = sorted(answers[2 * i : 2 * i + 2])
        assert made.startswith(f"CSAS_SAME{i}_"), answers
        assert "A stream with the same name already exists" in refused, answers
        service.scenes["b"].sql(f"DROP STREAM same{i} DELETE TOPIC;")
    assert len(service.states("a")) == len(service.states("b")) == 2


def test_a_frozen_server_loses_its_queries_and_finds_out(service):
    holder = service.holder("a")
    new = other(holder)
    pid = service.servers[holder].process.pid
    os.kill(pid, signal.SIGSTOP)  # of Python alone: the JVM with the queries goes on
    try:
        began = time.monotonic()
        service.write(1000)
        eventually(lambda: service.holder(new) == new, TAKEOVER_SECONDS)
        service.write(1000)
        eventually(lambda: service.counted(new) == service.expected())
        print(f"Taken over from a frozen server after {time.monotonic() - began:.1f} s")
    finally:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: service.holder(holder) == new, 15)
    assert {*service.states(holder)} == {*service.states(new)}
    eventually(lambda: len(service.doubled(new)) == service.written)
    service.write(500)
    eventually(lambda: service.counted(holder) == service.counted(new) == service.expected())


def test_when_the_holder_is_killed_the_other_takes_over_and_nothing_is_lost(service):
    holder = service.holder("a")
    new = other(holder)
    ends = service.scenes[new].admin.end_offsets
    done = sum(ends("DOUBLED").values())
    for i in range(10):
        service.write(5_000)
        if i == 5:
            eventually(lambda: sum(ends("DOUBLED").values()) > done)
            died = time.monotonic()
            service.servers[holder].kill()
            before = sum(ends("DOUBLED").values())
    eventually(lambda: sum(ends("DOUBLED").values()) > before, TAKEOVER_SECONDS)
    took = time.monotonic() - died
    print(f"The first row after the kill is there after {took:.1f} s")
    assert took < TAKEOVER_SECONDS
    eventually(lambda: service.holder(new) == new, 10)
    eventually(lambda: service.counted(new) == service.expected())
    eventually(lambda: len(service.doubled(new)) == service.written)
    assert service.doubled(new) == {2 * i for i in range(service.written)}
    assert service.status(new)[holder] == (False, [])
    assert {*map(str, service.states(new).values())} == {"{'RUNNING': 1}"}


def test_a_server_that_comes_back_follows_and_takes_statements(service):
    (gone,) = (n for n, server in service.servers.items() if server.process.poll() is not None)
    service.start(gone)
    scene = service.wait(gone)
    assert len(service.states(gone)) == 2
    scene.sql("TERMINATE ALL;")
    assert service.states(gone) == service.states(other(gone)) == {}
    assert service.servers[other(gone)].stop() == 0
    query = scene.create("CREATE STREAM late AS SELECT id, n, word FROM numbers;")
    eventually(lambda: service.states(gone) == {query: {"RUNNING": 1}}, 10)
    assert service.servers[gone].stop() == 0
