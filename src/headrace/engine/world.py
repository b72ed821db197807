"""What the engine works on: Kafka, the schema registry, Spark, and the settings in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from headrace.model.settings import Settings
from headrace.spark.bucket import DEFAULT_BUCKETS
from headrace.topics.admin import TopicAdmin
from headrace.topics.client import KafkaConnection
from headrace.topics.registry.client import RegistryClient
from headrace.topics.settings import client_settings


@dataclass(frozen=True)
class World:
    """`state_dir` is any path that Spark's file systems can write."""

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
    def log_topic(self) -> str:
        """The processing log's topic."""
        return (
            self.settings.text("ksql.logging.processing.topic.name")
            or f"{self.service_id}ksql_processing_log"
        )

    def producer_settings(self) -> dict[str, str]:
        """Settings of a producer on an executor: librdkafka's names, plain values."""
        return client_settings(self.kafka.settings).for_producer()
