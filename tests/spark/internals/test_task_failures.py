"""What a failed query tells of its reason."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from headrace.spark.internals.task_failures import kafka_was_away

KAFKA = "org.apache.kafka.common"


def failed(*causes):
    """A query's failure, with its causes from the outermost on."""
    failure = PySparkException("org.apache.kafka.common.errors.TimeoutException in the plan")
    one = failure
    for cause in causes:
        one._cause = PySparkException(cause)
        one = one._cause
    return failure


@pytest.mark.parametrize(
    "causes",
    [
        (
            f"java.util.concurrent.ExecutionException: {KAFKA}.errors.TimeoutException: Timed out",
            f"{KAFKA}.errors.TimeoutException: Timed out waiting for a node assignment.",
        ),
        (
            f"{KAFKA}.KafkaException: Failed to create new KafkaAdminClient",
            f"{KAFKA}.config.ConfigException: No resolvable bootstrap urls given",
        ),
        (
            "py4j.Py4JException: Job aborted due to stage failure: Lost task 0.0: "
            f"{KAFKA}.errors.TimeoutException: Timeout of 60000ms expired before the position",
        ),
        ("java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 120000 ms",),
    ],
)
def test_no_broker_answered(causes):
    assert kafka_was_away(failed(*causes))


@pytest.mark.parametrize(
    "causes",
    [
        (),
        (f"{KAFKA}.errors.UnknownTopicOrPartitionException: This server does not host this",),
        (f"{KAFKA}.errors.TopicAuthorizationException: Not authorized to access topics",),
        ("org.apache.spark.SparkException: Job 3 cancelled",),
    ],
)
def test_something_else_was_the_reason(causes):
    assert not kafka_was_away(failed(*causes))
