"""What a checkpoint has read, and what its topics still have; files are plain ones here."""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace

import pytest

from headrace.engine.queries import losses
from headrace.engine.queries import program as running
from headrace.engine.queries.losses import DataLossError, Memory, Reader
from headrace.kafka.admin import Topic
from headrace.model.errors import HeadraceError
from headrace.model.settings import Settings
from headrace.spark.runtime import offset_log


class PlainFiles:
    def __init__(self, spark, checkpoint):
        self._directory = checkpoint

    def read(self, name):
        path = self._directory / name
        return path.read_bytes() if path.exists() else None

    def write(self, name, data):
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def delete(self, name):
        shutil.rmtree(self._directory / name, ignore_errors=True)

    def numbers(self, directory):
        return [int(p.name) for p in (self._directory / directory).glob("*")]


class Topics:
    def __init__(self, **topics):
        self.found = topics

    def identify(self, names):
        return {
            name: (self.found[name]["id"], Topic(name, (1,) * len(self.found[name]["ends"])))
            for name in names
            if name in self.found
        }

    def begin_offsets(self, name):
        return dict(enumerate(self.found[name]["begins"]))

    def end_offsets(self, name):
        return dict(enumerate(self.found[name]["ends"]))


def topic(begins, ends, id_="one"):
    return {"id": id_, "begins": begins, "ends": ends}


class Checkpoint:
    """A query's, and what is told when it starts."""

    def __init__(self, directory):
        self.directory = directory
        self.told = []
        self.cluster = "c"

    def batch(self, number, *sources, finished=True):
        lines = ["v1", '{"batchWatermarkMs":0}', *map(json.dumps, sources)]
        for name, text in (("offsets", "\n".join(lines)), ("commits", "v1\n{}")):
            if name == "offsets" or finished:
                path = self.directory / name / str(number)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def offsets(self, number):
        head, _, *lines = (self.directory / "offsets" / str(number)).read_text().split("\n")
        assert head == "v1"
        return [json.loads(line) for line in lines]

    def start(self, topics, starts=None, *, exactly_once=False, accept=False, life="a"):
        reader = Reader("Q", self.directory, list(topics.found), starts or {}, exactly_once, life)
        env = SimpleNamespace(spark=None, admin=topics, cluster_id=self.cluster)
        self.told = []
        return reader.settle(
            env, accept, lambda entries: self.told.extend(map(json.loads, entries))
        )

    def ranges(self):
        details = [entry["message"]["kafkaStreamsThreadError"] for entry in self.told]
        return [(d["topic"], d["partition"], d["firstOffset"], d["lastOffset"]) for d in details]


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    for module in (losses, offset_log):
        monkeypatch.setattr(module, "CheckpointFiles", PlainFiles)
    monkeypatch.setattr(losses, "positions", lambda spark, checkpoint: {})
    monkeypatch.setattr(losses, "forget", lambda spark, path: shutil.rmtree(path))
    monkeypatch.setattr(losses, "PATIENCE_SECONDS", 0)
    return Checkpoint(tmp_path)


def test_where_nothing_is_missing_nothing_changes(checkpoint):
    checkpoint.batch(0, {"t": {"0": 5, "1": 7}})
    checkpoint.batch(1, {"t": {"0": 6, "1": 7}}, finished=False)
    reading = checkpoint.start(Topics(t=topic([5, 0], [9, 7])))
    assert checkpoint.told == [] and reading.memory.lost_records == 0
    assert checkpoint.offsets(0) == [{"t": {"0": 5, "1": 7}}]
    assert checkpoint.offsets(1) == [{"t": {"0": 6, "1": 7}}]


def test_records_that_were_deleted_are_told_once_and_passed_over(checkpoint):
    checkpoint.batch(3, {"t": {"0": 20, "1": 5}}, {"u": {"0": 1}})
    checkpoint.batch(4, {"t": {"0": 25, "1": 6}}, {"u": {"0": 2}}, finished=False)
    topics = Topics(t=topic([50, 0], [60, 6]), u=topic([0], [2], "two"))
    reading = checkpoint.start(topics)
    assert checkpoint.ranges() == [("t", 0, 20, 49)]
    assert checkpoint.told[0]["logger"] == "processing.Q.t.DataLoss"
    assert "30 records of partition 0 of topic 't' were deleted before they were read" in str(
        checkpoint.told[0]["message"]["kafkaStreamsThreadError"]["errorMessage"]
    )
    assert checkpoint.offsets(3) == [{"t": {"0": 50, "1": 5}}, {"u": {"0": 1}}]
    # The batch that was planned has nothing left there, and all it had elsewhere.
    assert checkpoint.offsets(4) == [{"t": {"0": 50, "1": 6}}, {"u": {"0": 2}}]
    assert reading.memory.lost_records == 30
    again = checkpoint.start(topics)
    assert checkpoint.told == [] and again.memory == reading.memory


def test_a_query_that_has_not_read_anything_yet(checkpoint):
    (checkpoint.directory / "sources").mkdir()
    reading = checkpoint.start(Topics(t=topic([4, 0, 0], [9, 9, 9])), {"t": {0: 2, 1: 9}})
    assert checkpoint.ranges() == [("t", 0, 2, 3)]
    # A new partition is read from its beginning; Spark wants to be told of each.
    assert reading.starts == {"t": {0: 4, 1: 9, 2: 0}}
    assert not (checkpoint.directory / "sources").exists()


def test_one_that_was_not_told_where_to_begin_reads_what_there_is(checkpoint):
    reading = checkpoint.start(Topics(t=topic([4], [9])))
    assert checkpoint.told == [] and reading.starts == {"t": {0: 4}}


def test_a_new_partition_whose_first_records_are_gone_already(checkpoint):
    checkpoint.batch(0, {"t": {"0": 5}})
    checkpoint.start(Topics(t=topic([0, 3], [9, 9])))
    assert checkpoint.ranges() == [("t", 1, 0, 2)]
    assert checkpoint.offsets(0) == [{"t": {"0": 5, "1": 3}}]


def test_a_new_topic_of_an_old_name_is_read_from_its_beginning(checkpoint):
    checkpoint.batch(7, {"t": {"0": 20, "1": 30}}, {"u": {"0": 4}})
    checkpoint.start(Topics(t=topic([0, 0], [20, 30]), u=topic([0], [4], "two")))
    checkpoint.batch(8, {"t": {"0": 25, "1": 31}}, {"u": {"0": 5}}, finished=False)
    remade = Topics(t=topic([0], [90], "another"), u=topic([0], [9], "two"))
    reading = checkpoint.start(remade)
    assert checkpoint.ranges() == [("t", 0, 20, None), ("t", 1, 30, None)]
    assert checkpoint.offsets(7) == [{"t": {"0": 0}}, {"u": {"0": 4}}]
    assert checkpoint.offsets(8) == [{"t": {"0": 0}}, {"u": {"0": 5}}]
    assert reading.seen["t"].id == "another" and len(reading.memory.losses) == 2
    checkpoint.start(remade)
    assert checkpoint.told == []


def test_topics_of_another_cluster_are_others_even_without_ids(checkpoint):
    checkpoint.batch(7, {"t": {"0": 20}})
    topics = Topics(t=topic([0], [90], "none"))
    checkpoint.start(topics)
    checkpoint.cluster = "another"
    checkpoint.start(topics)
    assert checkpoint.ranges() == [("t", 0, 20, None)]
    assert checkpoint.offsets(7) == [{"t": {"0": 0}}]


def test_what_another_kafka_left_behind_is_no_state_of_this_query(checkpoint):
    """Kafka was wiped, `state.dir` stayed, and the same statements were made again."""
    checkpoint.batch(7, {"t": {"0": 20}})
    checkpoint.start(Topics(t=topic([0], [20])), life="a")
    reading = checkpoint.start(Topics(t=topic([0], [90], "another")), {"t": {0: 0}}, life="b")
    assert reading.starts == {"t": {0: 0}} and checkpoint.told == []
    assert not (checkpoint.directory / "offsets").exists()


def test_a_partition_that_ends_earlier_is_read_on_from_its_end(checkpoint):
    checkpoint.batch(7, {"t": {"0": 20, "1": 5}})
    checkpoint.batch(8, {"t": {"0": 22, "1": 6}}, finished=False)
    checkpoint.start(Topics(t=topic([0, 0], [15, 9])))
    assert "it ends at offset 15, before 20" in json.dumps(checkpoint.told)
    assert checkpoint.offsets(7) == [{"t": {"0": 15, "1": 5}}]
    assert checkpoint.offsets(8) == [{"t": {"0": 15, "1": 6}}]


def test_nothing_is_said_of_a_log_that_is_damaged(checkpoint):
    checkpoint.batch(7, {"t": {"0": 60}})
    (checkpoint.directory / "offsets" / "7").write_text("")
    checkpoint.start(Topics(t=topic([50], [90])), {"t": {0: 0}}, exactly_once=True)
    assert checkpoint.told == []
    assert (checkpoint.directory / "offsets" / "7").read_text() == ""


def test_exactly_once_does_not_go_on_by_itself(checkpoint):
    checkpoint.batch(0, {"t": {"0": 20}})
    topics = Topics(t=topic([50], [60]))
    for _ in range(2):
        with pytest.raises(DataLossError, match=r"offsets 20 to 49\. .* RESUME Q; goes on"):
            checkpoint.start(topics, exactly_once=True)
        assert checkpoint.offsets(0) == [{"t": {"0": 20}}]
    reading = checkpoint.start(topics, exactly_once=True, accept=True)
    assert checkpoint.ranges() == [("t", 0, 20, 49)] and reading.memory.lost_records == 30
    checkpoint.start(topics, exactly_once=True)


def test_a_topic_that_is_gone_is_named(checkpoint):
    reader = Reader("Q", checkpoint.directory, ["t"], {}, False)
    env = SimpleNamespace(spark=None, admin=Topics(), cluster_id="c")
    with pytest.raises(HeadraceError, match="Topic 't' does not exist"):
        reader.settle(env, False, print)


def test_the_same_topic_twice_counts_from_where_it_is_least_far(checkpoint):
    checkpoint.batch(0, {"t": {"0": 20}}, {"t": {"0": 10}})
    checkpoint.start(Topics(t=topic([15], [60])))
    assert checkpoint.ranges() == [("t", 0, 10, 14)]
    assert checkpoint.offsets(0) == [{"t": {"0": 20}}, {"t": {"0": 15}}]


def test_only_the_last_losses_are_kept_and_all_are_counted(checkpoint):
    checkpoint.batch(0, {"t": {"0": 0}})
    for begin in range(1, 31):
        checkpoint.start(Topics(t=topic([begin], [60])))
    memory = Memory.read(None, checkpoint.directory)
    assert memory.lost_records == 30 and len(memory.losses) == losses.KEPT_LOSSES
    assert memory.losses[-1].last == 29


def test_a_batch_can_be_read_again_when_its_topic_has_grown(monkeypatch):
    batches = [[{"t": {"0": 5}}], [{"t": {"0": 9}}]]
    monkeypatch.setattr(running, "batch_offsets", lambda spark, path, batch: batches[batch])
    asked = []
    monkeypatch.setattr(running, "read_topic", lambda *arguments: asked.append(arguments))
    env = SimpleNamespace(
        spark=None,
        kafka=SimpleNamespace(java_settings={}),
        admin=SimpleNamespace(describe=lambda name: Topic(name, (1, 1, 1))),
        in_kafka=lambda name: name,
    )
    read = running._batch_reader(env, None, Settings({}), {"t": {0: 2}}, "path", 1)
    read(SimpleNamespace(topic="t"), False)
    (_, topic, _, start, end, _), *_ = asked
    assert (topic, start, end) == ("t", {0: 5, 1: 0, 2: 0}, {0: 9, 1: 0, 2: 0})
