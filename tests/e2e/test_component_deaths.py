"""Parts of a server die, one after the other: health tells, everything comes back by itself, and
nothing is lost. `pytest -s` prints how long each took."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from headrace.kafka.client import KafkaConnection
from headrace.kafka.ports import free_port
from headrace.kafka.records import NewRecord, RecordReader, RecordWriter
from headrace.model.errors import HeadraceError
from scene import Scene
from server_process import ServerProcess, eventually

pytestmark = pytest.mark.heavy

KEYS = 7
# What the issue asks for: everything is built up again within a minute.
AGAIN_SECONDS = 60.0


class Ground:
    """A server with a stateless and a stateful query, and records that come all the time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.ports = (free_port(), free_port(), free_port())
        self.server = ServerProcess(directory, self.ports)
        scene = self.server.scene()
        scene.sql(
            "CREATE STREAM numbers (k INT KEY, n INT, word STRING) "
            "WITH (kafka_topic='numbers', value_format='JSON', partitions=2);"
            "CREATE STREAM copies AS SELECT k, n, word FROM numbers;"
            "CREATE TABLE counts AS SELECT k, COUNT(*) AS c, MAX(n) AS n FROM numbers GROUP BY k;"
        )
        scene.close()
        self.sent = 0
        self._kafka = KafkaConnection({"bootstrap.servers": self.server.kafka})
        self._stopping = threading.Event()
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def scene(self) -> Scene:
        return Scene(self.server.url, self.server.kafka)

    def _send(self) -> None:
        """As an application would: what is not acknowledged is sent again, by the client."""
        with RecordWriter(self._kafka, delivery_timeout_ms=300_000, retries=1000) as writer:
            while not self._stopping.wait(0.05):
                n = self.sent
                key = (n % KEYS).to_bytes(4, "big")
                try:
                    writer.write(NewRecord("numbers", key, b'{"n":%d,"word":"w"}' % n))
                    self.sent = n + 1
                except HeadraceError as e:
                    print(f"{n} is not sent: {e}")

    def again(self, wanted: int) -> bool:
        """Whether both queries have all of the first so many records."""
        try:
            reader = RecordReader(KafkaConnection(self._kafka.settings, timeout=5))
            copied = {json.loads(r.value or b"")["N"] for r in reader.read("COPIES")}
            counts = {r.key: json.loads(r.value or b"")["C"] for r in reader.read("COUNTS")}
        except HeadraceError as e:
            print(f"not yet: {e}")
            return False
        return set(range(wanted)) <= copied and sum(counts.values()) >= wanted

    def settled(self) -> None:
        """Nothing is lost, and no key is counted twice."""
        self._stopping.set()
        self._sender.join()
        expected = {i: len(range(i, self.sent, KEYS)) for i in range(KEYS)}

        def counted() -> bool:
            reader = RecordReader(self._kafka)
            counts = {r.key: json.loads(r.value or b"")["C"] for r in reader.read("COUNTS")}
            # A record that was sent again by the application itself counts, too.
            return all(
                counts.get(k.to_bytes(4, "big"), 0) >= count for k, count in expected.items()
            )

        eventually(lambda: self.again(self.sent))
        eventually(counted)

    def health(self) -> dict[str, bool] | None:
        """The parts of the server, and whether each is well; None if it does not answer."""
        try:
            details = httpx.get(f"{self.server.url}/healthcheck", timeout=2).json()["details"]
        except (httpx.HTTPError, ValueError):
            return None
        return {name: part["isHealthy"] for name, part in details.items()}

    def find(self, what: str, parent: int | None = None) -> list[int]:
        """Processes below the server whose command line has these words."""
        parents = {
            int(entry.name): int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            for entry in Path("/proc").glob("[0-9]*")
            if (entry / "stat").exists()
        }
        found = []
        for pid in parents:
            with suppress(OSError):
                line = (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ")
                above = pid
                while above in parents and above != self.server.process.pid:
                    above = parents[above]
                if above == self.server.process.pid and what in line.decode():
                    found.append(pid)
        return [pid for pid in found if parent is None or parents[pid] == parent]

    def close(self) -> None:
        self._stopping.set()
        self.server.close()


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    made = Ground(tmp_path_factory.mktemp("deaths"))
    try:
        eventually(lambda: made.again(20))
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def table():
    rows: list[str] = []
    yield rows
    print("\n\n| what died | health says so after | all runs again after |\n|---|---|---|")
    print("\n".join(rows))


def the_jvm(ground: Ground) -> list[int]:
    return ground.find("org.apache.spark.deploy.SparkSubmit")


def the_broker(ground: Ground) -> list[int]:
    return ground.find("kafka.Kafka")[:1]


def the_workers_daemon(ground: Ground) -> list[int]:
    return ground.find("headrace.spark.runtime.workers", the_jvm(ground)[0])


def the_workers(ground: Ground) -> list[int]:
    return [
        pid for d in the_workers_daemon(ground) for pid in ground.find("spark.runtime.workers", d)
    ]


def the_fork_server(ground: Ground) -> list[int]:
    return ground.find("headrace.spark.internals.fork_server", ground.server.process.pid)


# What dies, how, and the part that health calls unwell; None if it has nothing to tell.
DEATHS: list[tuple[str, Callable[[Ground], list[int]], signal.Signals, str | None]] = [
    ("a Python worker, killed", the_workers, signal.SIGKILL, None),
    ("the daemon of the Python workers, killed", the_workers_daemon, signal.SIGKILL, None),
    ("the process that forks for operators, killed", the_fork_server, signal.SIGKILL, None),
    ("the embedded broker, killed", the_broker, signal.SIGKILL, "embeddedBroker"),
    ("the embedded broker, frozen until health says so", the_broker, signal.SIGSTOP, "kafka"),
    ("Spark's JVM, frozen until health says so", the_jvm, signal.SIGSTOP, "spark"),
    ("Spark's JVM, killed", the_jvm, signal.SIGKILL, "spark"),
]


@pytest.mark.parametrize(("what", "find", "number", "part"), DEATHS, ids=[d[0] for d in DEATHS])
def test_it_comes_back_by_itself(ground, table, what, find, number, part):
    pids = find(ground)
    assert pids, ground.server.told()
    died = time.monotonic()
    os.kill(pids[0], number)
    told = "–"
    if part is not None:
        # A server that begins anew does not answer for a while, which tells just as well.
        eventually(lambda: (seen := ground.health()) is None or not seen[part], 30)
        told = f"{time.monotonic() - died:.1f} s"
    if number is signal.SIGSTOP:
        os.kill(pids[0], signal.SIGCONT)
    began = time.monotonic()
    wanted = ground.sent + 10
    eventually(lambda: ground.sent >= wanted, AGAIN_SECONDS)
    eventually(lambda: ground.again(wanted), AGAIN_SECONDS)
    took = time.monotonic() - (began if number is signal.SIGSTOP else died)
    eventually(lambda: all((ground.health() or {"": False}).values()), 30)
    table.append(f"| {what} | {told} | {took:.1f} s |")
    assert took < AGAIN_SECONDS


def test_a_killed_server_goes_on_where_it_was(ground, table):
    died = time.monotonic()
    ground.server.kill()
    ground.server = ServerProcess(ground._directory, ground.ports)
    ground.server.scene().close()
    wanted = ground.sent + 10
    eventually(lambda: ground.again(wanted), 2 * AGAIN_SECONDS)
    took = time.monotonic() - died
    table.append(f"| the server itself, killed and started again | 0.0 s | {took:.1f} s |")


def test_nothing_was_lost(ground):
    ground.settled()
    assert ground.server.stop() == 0
