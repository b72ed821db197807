"""The same statements in local mode and on a standalone cluster, whose workers come and go."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from standalone import StandaloneCluster

from headrace.cli.demo import NOON, demo_script, produce
from headrace.kafka.ports import free_port
from headrace.kafka.records import (
    NewRecord,
    Record,
    RecordReader,
    RecordWriter,
)
from headrace.spark.runtime.package import DIRECTORY
from scene import Scene
from server_process import ServerProcess, eventually

pytestmark = pytest.mark.heavy

PIPELINE = Path(__file__).parent / "pipeline.sql"

# Of these every record counts, of the others the last one of each key.
STREAMS = ("LARGE_ORDERS", "ITEMS", "SHIPPED", "NAMED", "SPOKEN", "PER_MINUTE")
TABLES = ("SPENDING", "PER_USER")

USERS, FIRST, MORE = 40, 1_000, 9_000

FUNCTIONS = """
import os
import headrace
from headrace.functions import udf

@udf
def shout(text: str) -> str:
    return f"{text.upper()}!"

@udf
def workplace(text: str) -> str:
    return os.getcwd()

@udf
def origin(text: str) -> str:
    return headrace.__file__
"""

Topics = dict[str, list[Record]]


def test_a_cluster_gives_what_one_machine_gives(tmp_path: Path):
    with running(tmp_path / "local") as scene:
        start(scene)
        first = topics(scene)
        click(scene, FIRST, FIRST + MORE)
        drained(scene)
        all_of_them = topics(scene)

    with StandaloneCluster(tmp_path / "cluster") as cluster:
        works = [cluster.add_worker("one"), cluster.add_worker("two")]
        settings = {
            "spark.master": cluster.master,
            "spark.executor.memory": "700m",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # they live for minutes
            "spark.sql.shuffle.partitions": "2",
            "state.dir": str(tmp_path / "shared"),
        }
        with running(tmp_path / "server", settings) as scene:
            start(scene)
            there = topics(scene)
            for topic in STREAMS:
                assert by_key(there[topic]) == by_key(first[topic])
                assert by_partition(there[topic]) == by_partition(first[topic])
            assert last_rows(there) == last_rows(first)
            assert {place.parents[1] for place in places(scene)} == set(works)
            assert {made.parents[1].name for made in origins(scene)} == {DIRECTORY}

            click(scene, FIRST, FIRST + MORE)
            eventually(lambda: count(scene, "NAMED") > FIRST + MORE // 10, 60)
            cluster.kill_worker("one")
            assert count(scene, "NAMED") < FIRST + MORE, "it was killed too late to matter"
            drained(scene)
            there = topics(scene)
            for topic in STREAMS:  # a task that died has written a part of its rows
                assert set(whole(there[topic])) == set(whole(all_of_them[topic]))
            assert last_rows(there) == last_rows(all_of_them)

            third = cluster.add_worker("three")
            sent = FIRST + MORE

            def third_works() -> bool:
                nonlocal sent
                click(scene, sent, sent + 300)
                sent += 300
                drained(scene)
                return third in {place.parents[1] for place in places(scene)}

            eventually(third_works, 90)
            assert {q["state"] for q in scene.client.queries()} == {"RUNNING"}
    eventually(lambda: not left_in(tmp_path), 60)


# ------------------------------------------------------------------------------ the scene


@contextmanager
def running(directory: Path, settings: dict[str, str] | None = None) -> Iterator[Scene]:
    functions = directory / "ext"
    functions.mkdir(parents=True)
    (functions / "own.py").write_text(FUNCTIONS)
    ports = (free_port(), free_port(), free_port())
    told = {"ksql.extension.dir": str(functions), **(settings or {})}
    server = ServerProcess(directory / "data", ports, settings=told)
    try:
        yield server.scene()
        assert server.stop() == 0
    finally:
        server.close()


def start(scene: Scene) -> None:
    """The statements, and the first records."""
    scene.sql(demo_script())
    scene.sql(PIPELINE.read_text())
    with RecordWriter(scene.kafka) as writer:
        writer.write_all(
            NewRecord("users", b"u%d" % i, b'{"NAME":"name %d"}' % i, (), NOON)
            for i in range(0, USERS, 2)
        )
    produce(scene.kafka.settings["bootstrap.servers"])
    click(scene, 0, FIRST)
    drained(scene)


def click(scene: Scene, start: int, end: int) -> None:
    with RecordWriter(scene.kafka, linger_ms=20) as writer:
        writer.write_all(
            NewRecord(
                "clicks",
                b"u%d" % (i * 7 % USERS),
                b'{"PAGE":"page %d","MS":%d}' % (i % 11, i),
                (),
                NOON + 10 * i,
            )
            for i in range(start, end)
        )


def drained(scene: Scene) -> None:
    """Waits until every query has read everything."""
    for query in scene.client.queries():
        demo = set(query["sinks"]) & {"LARGE_ORDERS", "ITEMS", "SPENDING", "SHIPPED"}
        scene.drained(query["id"], "orders" if demo else "clicks")


# ----------------------------------------------------------------------------- what there is


def topics(scene: Scene) -> Topics:
    reader = RecordReader(scene.kafka)
    return {topic: list(reader.read(topic)) for topic in (*STREAMS, *TABLES)}


def count(scene: Scene, topic: str) -> int:
    return sum(scene.admin.end_offsets(topic).values())


def whole(records: Sequence[Record]) -> list[tuple[object, ...]]:
    return [(r.partition, r.key, r.value, r.timestamp, r.headers) for r in records]


def by_partition(records: Sequence[Record]) -> Counter[tuple[object, ...]]:
    return Counter(whole(records))


def by_key(records: Sequence[Record]) -> dict[object, list[tuple[object, ...]]]:
    """The records of each key, in order."""
    found = defaultdict(list)
    for record in records:
        found[record.key].append((record.value, record.timestamp))
    return found


def last_rows(there: Topics) -> dict[str, dict[object, tuple[object, ...]]]:
    return {topic: {k: rows[-1] for k, rows in by_key(there[topic]).items()} for topic in TABLES}


def places(scene: Scene) -> set[Path]:
    return {Path(json.loads(r.value)["PLACE"]) for r in RecordReader(scene.kafka).read("PLACES")}


def origins(scene: Scene) -> set[Path]:
    return {Path(json.loads(r.value)["ORIGIN"]) for r in RecordReader(scene.kafka).read("PLACES")}


def left_in(directory: Path) -> list[str]:
    """Processes that work below a directory, or name it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            where = (entry / "cwd").readlink()
        except OSError:
            continue
        if str(directory) in command or where.is_relative_to(directory):
            found.append(command)
    return found
