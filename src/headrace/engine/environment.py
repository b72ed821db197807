"""What the engine works with: Kafka, the schema registry, Spark, and the settings in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from headrace.kafka.admin import Replication, TopicAdmin
from headrace.kafka.client import KafkaConnection
from headrace.model.settings import Settings
from headrace.registry.client import RegistryClient
from headrace.spark.state.kernel_step import DEFAULT_BUCKETS

COMPRESSION = "compression.type"
# How many replicas there are, and must be, of topics that Headrace makes for itself.
REPLICAS = (
    "ksql.internal.topic.replicas",
    "ksql.internal.topic.min.insync.replicas",
    "ksql.logging.processing.topic.replication.factor",
)


@dataclass(frozen=True)
class Environment:
    """What one server works with. `state_dir` is any path that Spark's file systems can write."""

    settings: Settings
    kafka: KafkaConnection
    admin: TopicAdmin
    registry: RegistryClient | None
    spark: SparkSession
    state_dir: str
    data_dir: Path
    cluster_id: str = ""
    # Into how many buckets a step's state is split, and with it the order of its rows.
    buckets: int = DEFAULT_BUCKETS
    # Topics that bear another name in Kafka than in statements.
    topic_names: Mapping[str, str] = field(default_factory=dict)

    def in_kafka(self, topic: str) -> str:
        return self.topic_names.get(topic, topic)

    @property
    def service_id(self) -> str:
        return self.settings.text("ksql.service.id") or "default_"

    @property
    def replication(self) -> Replication:
        """Of internal topics."""
        replicas, in_sync, _ = map(self.settings.number, REPLICAS)
        return Replication(replicas, in_sync)

    @property
    def log_replicas(self) -> int:
        """Of the processing log's topic."""
        return self.settings.number(REPLICAS[2])

    def query_group(self, query_id: str) -> str:
        """The consumer group of a query, named as ksqlDB does, so that access rules fit."""
        return f"_confluent-ksql-{self.service_id}query_{query_id}"

    @property
    def log_topic(self) -> str:
        """The processing log's topic."""
        return (
            self.settings.text("ksql.logging.processing.topic.name")
            or f"{self.service_id}ksql_processing_log"
        )

    def producer_settings(self, query: Settings) -> dict[str, str]:
        """Settings of a query's producers on executors: librdkafka's names, plain values."""
        own = query.text("ksql.streams.producer.compression.type")
        told = self.kafka.producer_settings
        return told if own is None else {**told, COMPRESSION: own}
