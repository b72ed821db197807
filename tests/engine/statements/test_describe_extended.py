"""DESCRIBE … EXTENDED: what ksqlDB's clients read of it."""

from __future__ import annotations

import pytest

from headrace.catalog.catalog import Catalog, QueryRecord
from headrace.engine.queries.persistent import PersistentQuery
from headrace.engine.queries.statistics import TopicStatistics
from headrace.engine.statements.handling import Queries
from headrace.kafka.admin import Topic
from headrace.kafka.client import UnknownTopicError
from headrace.model.entities import QueryState
from headrace.model.errors import UnavailableError
from partial_engine import ask
from plan_catalog import Catalog as Planning


class Topics:
    """A topic `s` of two partitions and `O`, which the query writes; the group has committed."""

    def __init__(self, committed=None):
        self.gone = set()
        self.silent = False
        self.committed = committed or {}

    def describe(self, name):
        self._check(name)
        return Topic(name, (1, 1))

    def begin_offsets(self, name):
        self._check(name)
        return {0: 0, 1: 2}

    def end_offsets(self, name):
        self._check(name)
        return {0: 10, 1: 8}

    def group_positions(self, group, topics=None):
        self._check("")
        return self.committed

    def _check(self, name):
        if self.silent:
            raise UnavailableError("Kafka does not answer")
        if name in self.gone:
            raise UnknownTopicError(f"Topic '{name}' does not exist in Kafka.")


class Members:
    address = "here:8088"

    def __init__(self, runs_queries=True):
        self.runs_queries = runs_queries

    def status(self, query):
        return self.address, QueryState.RUNNING, ()

    def warning(self, query):
        return None


@pytest.fixture
def catalog():
    planning = Planning()
    planning.run("CREATE STREAM s (v INT) WITH (kafka_topic='s', value_format='JSON');")
    planning.run("CREATE STREAM o AS SELECT v FROM s;")
    sources = {s.name: s for s in planning.sources()}
    record = QueryRecord("CSAS_O_1", "CREATE STREAM O …", ("S",), "O", True)
    return Catalog(sources, {}, {record.id: record})


def described(catalog, kafka, positions, *, runs_here=True, counted=lambda statistics: None):
    statistics = TopicStatistics(lambda: 1_700_000_000.25)
    counted(statistics)
    query = PersistentQuery("CSAS_O_1", "", lambda: None, lambda *_: None, "")
    query.reached = positions
    queries = Queries({query.id: query}, (), Members(runs_here), statistics)
    told = ask(
        "DESCRIBE o EXTENDED;",
        catalog=catalog,
        queries=queries,
        admin=kafka,
        query_group=lambda id_: f"_confluent-ksql-default_query_{id_}",
    )
    return told["sourceDescription"]


def test_how_far_the_query_that_writes_it_has_read(catalog):
    told = described(catalog, Topics(), {"s": {0: 4, 1: 8}})
    assert told["queryOffsetSummaries"] == [
        {
            "groupId": "_confluent-ksql-default_query_CSAS_O_1",
            "topicSummaries": [
                {
                    "kafkaTopic": "s",
                    "offsets": [
                        {
                            "partition": 0,
                            "logStartOffset": 0,
                            "logEndOffset": 10,
                            "consumerOffset": 4,
                        },
                        {
                            "partition": 1,
                            "logStartOffset": 2,
                            "logEndOffset": 8,
                            "consumerOffset": 8,
                        },
                    ],
                }
            ],
        }
    ]


def consumer_offsets(told):
    (group,) = told["queryOffsetSummaries"]
    return {
        topic["kafkaTopic"]: [p["consumerOffset"] for p in topic["offsets"]]
        for topic in group["topicSummaries"]
    }


def test_a_server_that_runs_no_queries_reads_what_the_group_has_committed(catalog):
    kafka = Topics(committed={"s": {0: 3, 1: 2}})
    told = described(catalog, kafka, {}, runs_here=False)
    assert consumer_offsets(told) == {"s": [3, 2]}


def test_a_query_that_has_not_begun_has_committed_nothing(catalog):
    assert consumer_offsets(described(catalog, Topics(), {})) == {}


def test_a_source_topic_that_is_gone(catalog):
    kafka = Topics()
    kafka.gone = {"s"}
    assert consumer_offsets(described(catalog, kafka, {"s": {0: 4}})) == {}


def test_kafka_is_away(catalog):
    kafka = Topics()
    kafka.silent = True
    told = described(catalog, kafka, {"s": {0: 4}})
    assert told["queryOffsetSummaries"] == []


def test_statistics_as_ksqldb_prints_them(catalog):
    def counted(statistics):
        statistics.produced("O", 441)
        statistics.failed("O", 3)

    told = described(catalog, Topics(), {}, counted=counted)
    assert told["statistics"] == (
        "messages-per-sec:      4.41   total-messages:       441     last-message: "
        "2023-11-14T22:13:20.250Z"
    )
    assert told["errorStats"] == (
        "consumer-failed-messages-per-sec:      0.03 consumer-failed-messages:         3      "
        "last-failed: 2023-11-14T22:13:20.250Z"
    )
    assert told["clusterStatistics"] == [
        {"name": name, "host": "here:8088", "value": value, "timestamp": 1_700_000_000_250}
        for name, value in (("messages-per-sec", 4.41), ("total-messages", 441.0))
    ]
    assert [s["name"] for s in told["clusterErrorStats"]] == [
        "consumer-failed-messages-per-sec",
        "consumer-failed-messages",
    ]


def test_without_records_there_are_no_statistics(catalog):
    told = described(catalog, Topics(), {})
    assert told["statistics"] == told["errorStats"] == ""
    assert told["clusterStatistics"] == told["clusterErrorStats"] == []
