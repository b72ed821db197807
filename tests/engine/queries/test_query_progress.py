"""What running queries have done is counted, and their offsets are committed to Kafka."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from headrace.engine.queries.persistent import PersistentQuery
from headrace.engine.queries.query_progress import (
    COMMIT_SECONDS,
    FIRST_BACKOFF,
    MOST_BACKOFF,
    REFRESH_SECONDS,
    QueryProgress,
)
from headrace.engine.queries.statistics import TopicStatistics
from headrace.model.errors import UnavailableError
from plan_catalog import Catalog


class Update:
    """What Spark tells of one micro-batch."""

    def __init__(self, at, ends, **observed):
        self._told = {
            "timestamp": at,
            "sources": [{"endOffset": end} for end in ends],
            "observedMetrics": {"headrace": observed} if observed else {},
        }

    def timestamp(self):
        return self._told["timestamp"]

    def json(self):
        return json.dumps(self._told)


class Streaming:
    """A streaming query of Spark's, with the Java object behind it."""

    def __init__(self, *updates):
        self.updates = list(updates)
        self._jsq = self

    def lastProgress(self):
        return self.updates[-1] if self.updates else None

    def recentProgress(self):
        return self.updates

    def stop(self):
        pass


class Admin:
    """Kafka: what is committed, and which groups fail for which reason."""

    def __init__(self):
        self.groups = {}
        self.commits = 0
        self.failing = {}

    def commit(self, groups, timeout):
        self.commits += 1
        for group, positions in groups.items():
            if group not in self.failing:
                self.groups[group] = positions
        return {g: f for g, f in self.failing.items() if g in groups}

    def delete_groups(self, groups, timeout):
        for group in groups:
            if group not in self.failing:
                self.groups.pop(group, None)
        return {g: f for g, f in self.failing.items() if g in groups}


class Scene:
    def __init__(self):
        self.now = 0.0
        self.admin = Admin()
        self.holds = True
        self.known = {}
        self.keeper = SimpleNamespace(active=True, all_known=lambda: list(self.known.values()))
        self.statistics = TopicStatistics()
        env = SimpleNamespace(
            admin=self.admin, query_group=lambda id_: f"g_{id_}", in_kafka=lambda topic: topic
        )
        self.progress = QueryProgress(
            lambda: env, self.keeper, lambda: self.holds, self.statistics, lambda: self.now
        )

    def query(self, id_="Q", starts=None):
        catalog = Catalog()
        catalog.run("CREATE STREAM s (v INT) WITH (kafka_topic='s', value_format='JSON');")
        planned = catalog.plan("CREATE STREAM o AS SELECT v FROM s;")
        query = PersistentQuery(id_, "", lambda: planned, lambda *_: None, "")
        query.reading = SimpleNamespace(starts=starts or {"s": {0: 0, 1: 0}})
        query.streaming = Streaming()
        self.known[id_] = query
        return query

    def look(self, after=COMMIT_SECONDS):
        self.now += after
        self.progress.look()

    def figures(self, topic):
        every = (*self.statistics.of(topic), *self.statistics.failures_of(topic))
        return {s.name: s.value for s in every if "per-sec" not in s.name}


@pytest.fixture
def scene():
    return Scene()


def test_a_query_that_starts_is_where_its_checkpoint_says(scene):
    scene.query(starts={"s": {0: 3, 1: 4}})
    scene.look()
    assert scene.admin.groups == {"g_Q": {"s": {0: 3, 1: 4}}}
    assert scene.figures("s") == {}


def test_each_batch_is_counted_once_and_its_end_committed(scene):
    query = scene.query()
    query.streaming.updates = [Update("1", [{"s": {"0": 5, "1": 0}}], written=4, unread0=1)]
    scene.look()
    scene.look()
    query.streaming.updates += [
        Update("2", [{"s": {"0": 6, "1": 0}}], written=1, unread0=None),
        Update("3", [{"s": {"0": 6, "1": 2}}], written=2),
        Update("4", [{"s": {"0": 6, "1": 2}}]),  # it waited for records
    ]
    scene.look()
    assert scene.admin.groups == {"g_Q": {"s": {0: 6, 1: 2}}}
    assert scene.admin.commits == 2  # none in between: nothing had changed
    assert scene.figures("s") == {"consumer-total-messages": 8, "consumer-failed-messages": 1}
    assert scene.figures("O") == {"total-messages": 7}


def test_of_two_that_read_a_topic_the_one_that_is_least_far_counts(scene):
    query = scene.query()
    query.streaming.updates = [Update("1", [{"s": {"0": 5}}, {"s": {"0": 3}}, None])]
    scene.look()
    assert scene.admin.groups["g_Q"]["s"][0] == 3


def test_a_query_that_is_paused_keeps_its_place(scene):
    query = scene.query()
    query.streaming.updates = [Update("1", [{"s": {"0": 5, "1": 0}}], written=5)]
    query.stop()
    query.paused = True
    scene.look()
    assert scene.admin.groups == {"g_Q": {"s": {0: 5, 1: 0}}}
    assert scene.figures("s") == {"consumer-total-messages": 5}
    assert query.ended is None


def test_a_query_that_starts_again_goes_on_from_there(scene):
    query = scene.query()
    query.streaming.updates = [Update("1", [{"s": {"0": 5, "1": 0}}])]
    scene.look()
    query.streaming.updates.append(Update("2", [{"s": {"0": 8, "1": 0}}]))
    query.stop()
    query.streaming = Streaming()
    query.reading, query.reached = SimpleNamespace(starts={"s": {0: 8, 1: 0}}), None
    scene.look()
    assert scene.admin.groups["g_Q"]["s"] == {0: 8, 1: 0}
    assert scene.figures("s") == {"consumer-total-messages": 8}


def test_records_that_only_the_program_knows_of(scene):
    query = scene.query()
    query.unread = Counter(s=2)
    scene.look()
    query.unread["s"] += 1
    scene.look()
    query.unread = Counter(s=1)  # it has started again
    scene.look()
    assert scene.figures("s") == {"consumer-failed-messages": 4}


def test_offsets_that_do_not_change_are_committed_again_before_kafka_forgets(scene):
    scene.query()
    scene.look()
    scene.look(REFRESH_SECONDS - 1)
    assert scene.admin.commits == 1
    scene.look(1)
    assert scene.admin.commits == 2


def test_only_the_server_that_holds_the_lease_commits_and_deletes(scene):
    scene.query()
    scene.progress.forget("OLD")
    scene.admin.groups["g_OLD"] = {}
    scene.holds = False
    scene.look()
    scene.holds, scene.keeper.active = True, False
    scene.look()
    assert scene.admin.groups == {"g_OLD": {}}
    scene.keeper.active = True
    scene.look()
    assert list(scene.admin.groups) == ["g_Q"]


def test_kafka_is_away(scene, caplog):
    """It is told once, tried less and less often, and the query knows nothing of it."""
    query = scene.query()
    scene.admin.failing["g_Q"] = UnavailableError("Kafka does not answer")
    scene.look()
    waits, before = [], scene.now
    while len(waits) < 8:
        scene.look(1)
        if scene.admin.commits == len(waits) + 2:
            waits.append(scene.now - before)
            before = scene.now
    assert waits[:3] == [FIRST_BACKOFF, 2 * FIRST_BACKOFF, 4 * FIRST_BACKOFF]
    assert max(waits) == MOST_BACKOFF
    assert query.errors == []
    told = "The offsets of query Q are not committed to Kafka: Kafka does not answer"
    assert caplog.messages == [told]
    scene.admin.failing.clear()
    query.streaming.updates = [Update("1", [{"s": {"0": 5, "1": 0}}])]
    scene.look(MOST_BACKOFF)
    assert scene.admin.groups == {"g_Q": {"s": {0: 5, 1: 0}}}


def test_one_query_that_may_not_commit_does_not_hold_up_another(scene):
    scene.query("A")
    scene.query("B")
    scene.admin.failing["g_A"] = UnavailableError("not allowed")
    scene.look()
    assert list(scene.admin.groups) == ["g_B"]


def test_the_group_of_a_query_that_has_ended_is_deleted(scene, caplog):
    scene.query()
    scene.look()
    scene.admin.failing["g_Q"] = UnavailableError("down")
    del scene.known["Q"]
    scene.progress.forget("Q")
    scene.look()
    assert "g_Q" in scene.admin.groups
    assert "consumer group of query Q, which has ended, is not deleted: down" in caplog.text
    scene.admin.failing.clear()
    scene.look(FIRST_BACKOFF)
    assert scene.admin.groups == {}


def test_a_query_of_the_same_name_keeps_the_group(scene):
    scene.query()
    scene.progress.forget("Q")
    scene.look()
    assert list(scene.admin.groups) == ["g_Q"]
