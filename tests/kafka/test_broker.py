"""The embedded broker's life: restarts, kills, leftovers, refusals."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.broker import EmbeddedBroker, Leftover, start_time
from headrace.kafka.client import KafkaConnection
from headrace.kafka.jars import Jars
from headrace.kafka.records import NewRecord, RecordReader, RecordWriter
from headrace.model.errors import UnavailableError

pytestmark = pytest.mark.heavy

SERVER = """
import signal, sys
from pathlib import Path
from headrace.kafka.broker import EmbeddedBroker
broker = EmbeddedBroker(Path(sys.argv[1]))
broker.start()
print(broker.bootstrap_servers, broker.pid, flush=True)
signal.pause()
"""


def connect(address: str) -> KafkaConnection:
    return KafkaConnection({"bootstrap.servers": address}, timeout=15)


def await_death(pid: int) -> None:
    deadline = time.monotonic() + 20
    while start_time(pid) is not None:
        assert time.monotonic() < deadline, f"process {pid} lives on"
        time.sleep(0.02)


def a_server(directory: Path) -> tuple[subprocess.Popen[str], str, int]:
    """A process of its own that runs a broker: the process, the address, the broker's pid."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, directory], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    address, pid = server.stdout.readline().split()
    return server, address, int(pid)


def test_data_survives_restarts_and_kills(tmp_path: Path, jars: Jars) -> None:
    directory = tmp_path / "a b & c" / "kafka"  # nothing minds such a path
    with EmbeddedBroker(directory, jars=jars) as broker:
        kafka = connect(broker.bootstrap_servers)
        TopicAdmin(kafka).create(TopicSpec("orders", configs={"retention.ms": "99"}))
        TopicAdmin(kafka).set_configs("orders", {"retention.ms": "-1"})
        with RecordWriter(kafka) as writer:
            writer.write(NewRecord("orders", value=b"1"))
        pid = broker.pid
        assert pid is not None
    await_death(pid)

    # A second time in a server that is killed without a chance to stop its broker.
    server, address, pid = a_server(directory)
    with RecordWriter(connect(address)) as writer:
        writer.write(NewRecord("orders", value=b"2"))
    with pytest.raises(UnavailableError, match=rf"Another Headrace server \(process {server.pid}"):
        EmbeddedBroker(directory, jars=jars).start()
    server.kill()
    server.wait()
    # At once: the broker of the killed server is on its way out.
    with EmbeddedBroker(directory, jars=jars) as broker:
        assert start_time(pid) is None
        kafka = connect(broker.bootstrap_servers)
        assert [r.value for r in RecordReader(kafka).read("orders")] == [b"1", b"2"]
        assert TopicAdmin(kafka).configs("orders")["retention.ms"] == "-1"


def test_a_leftover_broker_is_ended(tmp_path: Path, jars: Jars) -> None:
    server, _, pid = a_server(tmp_path)
    # Its watcher is killed too, so that nobody stops the broker with the server.
    for child in Path("/proc").glob("[0-9]*/stat"):
        fields = child.read_text().rpartition(")")[2].split()
        if int(fields[2]) == pid and child.parent.name != str(pid):
            os.kill(int(child.parent.name), signal.SIGKILL)
    server.kill()
    server.wait()
    assert start_time(pid) is not None
    with EmbeddedBroker(tmp_path, jars=jars) as broker:
        assert broker.pid != pid
        assert start_time(pid) is None


def test_a_broker_that_died_is_started_again(tmp_path: Path, jars: Jars) -> None:
    with EmbeddedBroker(tmp_path, jars=jars) as broker:
        address, pid = broker.bootstrap_servers, broker.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await_death_of_child(broker)
        broker.start()
        assert broker.running
        assert broker.bootstrap_servers == address
        TopicAdmin(connect(address)).topics()


def await_death_of_child(broker: EmbeddedBroker) -> None:
    deadline = time.monotonic() + 20
    while broker.running:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_port_that_is_taken(tmp_path: Path, jars: Jars) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UnavailableError, match=f"Port {port} for the embedded Kafka broker is"):
            EmbeddedBroker(tmp_path, port=port, jars=jars).start()


def test_a_setting_that_kafka_refuses(tmp_path: Path, jars: Jars) -> None:
    broker = EmbeddedBroker(tmp_path, jars=jars, settings={"num.io.threads": "many"})
    with pytest.raises(UnavailableError, match=r"num\.io\.threads"):
        broker.start()
    assert not broker.running


def test_a_directory_that_cannot_be_written(tmp_path: Path, jars: Jars) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match="choose a directory that can be written"):
        EmbeddedBroker(tmp_path / "file" / "kafka", jars=jars).start()


def test_a_kept_broker_comes_back_with_what_it_has_taken(tmp_path: Path, jars: Jars) -> None:
    with EmbeddedBroker(tmp_path / "kafka", jars=jars) as broker:
        kafka = connect(broker.bootstrap_servers)
        TopicAdmin(kafka).create(TopicSpec("orders"))
        stopping = threading.Event()
        keeper = threading.Thread(target=broker.keep, args=(stopping,))
        keeper.start()
        try:
            with RecordWriter(kafka, delivery_timeout_ms=60_000) as writer:
                writer.write(NewRecord("orders", value=b"before"))
                first = broker.pid
                assert first is not None and broker.failure is None
                os.kill(first, signal.SIGKILL)
                await_death(first)
                writer.write(NewRecord("orders", value=b"after"))
            assert broker.pid not in (None, first)
            assert [r.value for r in RecordReader(kafka).read("orders")] == [b"before", b"after"]
        finally:
            stopping.set()
            keeper.join()
    assert broker.failure is not None


def test_the_broker_of_a_program_that_ran_in_this_process_before_is_a_leftover(
    tmp_path: Path,
) -> None:
    file = tmp_path / "broker.pid"
    Leftover.write(file, os.getpid())
    own = Leftover.read(file)
    assert own is not None and own.owner_lives
    file.write_text(file.read_text().replace(own._program, "another"))
    before = Leftover.read(file)
    assert before is not None and not before.owner_lives
