"""What a task raised, found among the causes of a failed query.

The query's own message is of no use for it: it also holds the plan, which names whatever the plan
might raise.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors import PySparkException

# What Kafka's clients and Spark's source say when no broker answers in time, or has an address.
_KAFKA_AWAY = (
    "org.apache.kafka.common.errors.TimeoutException",
    "org.apache.kafka.common.errors.DisconnectException",
    "org.apache.kafka.common.errors.NetworkException",
    "org.apache.kafka.common.errors.BrokerNotAvailableException",
    "org.apache.kafka.common.errors.LeaderNotAvailableException",
    "TimeoutException: Cannot fetch record for offset",
    "No resolvable bootstrap urls",
)


def raised_in_tasks(failure: BaseException) -> str:
    """What `raise_error` or a Python function said: the parameters of a cause's error condition,
    or its text where it has none, as what a function of `foreachBatch` raised."""
    return "\n".join(text for cause in _causes(failure) for text in _said(cause))


def kafka_was_away(failure: BaseException) -> bool:
    """Whether a query failed because no broker answered: the next attempt may have more luck."""
    told = "\n".join(str(cause) for cause in _causes(failure))
    return any(word in told for word in _KAFKA_AWAY)


def _causes(failure: BaseException) -> Iterator[PySparkException]:
    cause = getattr(failure, "_cause", None)
    while isinstance(cause, PySparkException):
        yield cause
        cause = getattr(cause, "_cause", None)


def _said(cause: PySparkException) -> list[str]:
    parameters = cause.getMessageParameters()
    return [*parameters.values()] if parameters else [str(cause)]
