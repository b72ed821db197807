"""Every kind of query that remembers something: killed again and again, and left alone.

The queries of the one run live through kills, 20 in all, while their topics grow; those of the
other are created at the end and read everything in one go. Both must have come to the same.
"""

from __future__ import annotations

import os
import random
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.kafka.broker import EmbeddedBroker
from headrace.kafka.ports import free_port
from headrace.kafka.records import RecordWriter
from scene import Scene
from server_process import ServerProcess, batches, eventually, unfinished
from workload import KINDS, SOURCES, TOPICS, Feed, Kind, outcome

pytestmark = pytest.mark.heavy

KILLS = int(os.environ.get("KILLS", "4"))  # of each group
PIECES = 8  # in which the records of a chunk come

GROUPS = {
    "aggregates": ("native", "kernel", "undone", "filtered"),
    "windows": ("tumbling", "hopping", "sessions", "final"),
    "streams": ("stream_inner", "stream_left", "stream_outer", "looked_up"),
    "tables": ("tables", "foreign_key", "three_ways"),
    "chains": ("keyed", "chained"),
}


@pytest.fixture
def broker(tmp_path):
    """It outlives the servers, so that these start sooner."""
    with EmbeddedBroker(tmp_path / "kafka", free_port()) as running:
        yield running


@pytest.mark.parametrize("group", GROUPS)
def test_what_a_query_remembers_survives_kills(tmp_path, broker, group, seed):
    survives(tmp_path, broker.bootstrap_servers, GROUPS[group], KILLS, seed)


def test_brief_an_aggregate_and_a_join_survive_kills(tmp_path, broker, seed):
    survives(tmp_path, broker.bootstrap_servers, ("tumbling", "stream_left"), 2, seed)


def survives(tmp_path: Path, kafka: str, names: Sequence[str], kills: int, seed: int) -> None:
    """Runs queries whole, and with servers that are killed: the outcome is the same."""
    feed, chance = Feed(), random.Random(seed)
    kinds = [kind for kind in KINDS if kind.name in names]
    data_dir, ports = tmp_path / "server", (free_port(), free_port(), free_port())
    server = ServerProcess(data_dir, ports, kafka)
    try:
        scene = server.scene()
        for topic, partitions in TOPICS.items():
            scene.topic(topic, partitions)
        with RecordWriter(scene.kafka) as writer:
            writer.write_all(feed.cities())
            scene.sql(SOURCES)
            create(scene, kinds, "killed")
            for number in range(kills):
                records = list(feed.chunk(number))
                size = -(-len(records) // PIECES)
                pieces = deque(records[i : i + size] for i in range(0, len(records), size))
                before = batches(data_dir)
                writer.write_all(pieces.popleft())
                eventually(lambda: batches(data_dir) > before)  # noqa: B023
                # From here on there is always something to do: a kill is inside a batch, or between
                # two. What it leaves over comes while nobody reads.
                for _ in range(chance.randrange(PIECES)):
                    writer.write_all(pieces.popleft())
                    time.sleep(chance.uniform(0, 0.5))
                server.kill(everything=number % 2 == 0)
                print(f"kill {number + 1} interrupted {unfinished(data_dir)} micro-batches")
                for piece in pieces:
                    writer.write_all(piece)
                server = ServerProcess(data_dir, ports, kafka)
                scene = server.scene()
            writer.write_all(feed.chunk(kills))
            # Time does not jump ahead of what the other side of a join still has to say.
            drained(scene, kinds, "killed")
            writer.write_all(feed.last())
        create(scene, kinds, "whole")
        for run in ("whole", "killed"):
            drained(scene, kinds, run)
        assert {q["state"] for q in scene.client.queries()} == {"RUNNING"}
        for kind in kinds:
            assert_same(scene, kind)
        assert server.stop() == 0
    finally:
        server.close()


def drained(scene: Scene, kinds: Sequence[Kind], run: str) -> None:
    for kind in kinds:
        scene.drained(query_of(scene, kind, run), *kind.topics(run))


def create(scene: Scene, kinds: Sequence[Kind], run: str) -> None:
    for kind in kinds:
        scene.sql(kind.statement(run))


def test_every_kind_is_in_a_group():
    assert sorted(k.name for k in KINDS) == sorted(name for g in GROUPS.values() for name in g)


def query_of(scene: Scene, kind: Kind, run: str) -> str:
    return next(q["id"] for q in scene.client.queries() if q["sinks"] == [kind.sink(run)])


def assert_same(scene: Scene, kind: Kind) -> None:
    whole, killed = (outcome(scene.kafka, kind, run) for run in ("whole", "killed"))
    assert whole, kind.name
    assert not whole - killed, f"{kind.name} lacks rows"
    assert not killed - whole, f"{kind.name} has rows that should not be there"
