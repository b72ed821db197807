"""ASSERT TOPIC and ASSERT SCHEMA: checked repeatedly until they hold or time out."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import TypeVar

from headrace.engine.statements.handling import StatementContext, handles
from headrace.kafka.admin import Topic
from headrace.kafka.client import UnknownTopicError
from headrace.model.entities import AssertedSchema, AssertedTopic, Entity
from headrace.model.errors import HeadraceError
from headrace.sql import ast

T = TypeVar("T")

# Between two looks, in seconds.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0


class AssertionPending(HeadraceError):
    """The assertion does not hold now, but may within `patience` seconds."""

    error_code = 41700

    def __init__(self, problem: str, patience: float) -> None:
        super().__init__(problem)
        self.patience = patience


def eventually(run: Callable[[], T]) -> Generator[float, None, T]:
    """Runs a statement repeatedly until its assertion holds or times out. Yields the seconds to
    wait in between, so that no thread is blocked."""
    started = time.monotonic()
    pause = FIRST_PAUSE
    while True:
        try:
            return run()
        except AssertionPending as problem:
            left = started + problem.patience - time.monotonic()
            if left <= 0:
                raise
        yield min(pause, left)
        pause = min(pause * 1.5, LONGEST_PAUSE)


@handles(ast.AssertTopic)
def _topic(statement: ast.AssertTopic, context: StatementContext) -> Entity:
    default = context.settings.number("ksql.assert.topic.default.timeout.ms")
    _check(_topic_problem(statement, context), statement.timeout, default)
    return AssertedTopic(context.text, statement.topic, statement.exists)


@handles(ast.AssertSchema)
def _schema(statement: ast.AssertSchema, context: StatementContext) -> Entity:
    default = context.settings.number("ksql.assert.schema.default.timeout.ms")
    _check(_schema_problem(statement, context), statement.timeout, default)
    return AssertedSchema(context.text, statement.subject, statement.id, statement.exists)


def _check(problem: str | None, timeout: ast.Duration | None, default_ms: int) -> None:
    if problem is not None:
        raise AssertionPending(problem, (default_ms if timeout is None else timeout.millis) / 1000)


def _topic_problem(statement: ast.AssertTopic, context: StatementContext) -> str | None:
    name = statement.topic
    try:
        topic = context.env.admin.describe(name)
    except UnknownTopicError:
        return f"Topic {name} does not exist" if statement.exists else None
    except HeadraceError as e:
        return f"Cannot check topic existence: {e}"
    if not statement.exists:
        return f"Topic {name} exists"
    problems = [p for item in statement.properties if (p := _mismatch(topic, *item)) is not None]
    return "\n".join(problems) or None


def _mismatch(topic: Topic, name: str, expected: ast.Literal) -> str | None:
    actual = {"partitions": topic.partitions, "replicas": topic.replication_factor}.get(
        name.lower()
    )
    if actual is None:
        return f"Cannot assert unknown topic property: {name}"
    if isinstance(expected, ast.IntegerLiteral) and expected.value == actual:
        return None
    return (
        f"Mismatched configuration for topic {topic.name}: For config {name.lower()}, "
        f"expected {expected.value} got {actual}"
    )


def _schema_problem(statement: ast.AssertSchema, context: StatementContext) -> str | None:
    try:
        there = _schema_exists(statement, context)
    except HeadraceError as e:
        return f"Cannot check schema existence: {e}"
    if there == statement.exists:
        return None
    subject = "" if statement.subject is None else f" subject name {statement.subject}"
    id_ = "" if statement.id is None else f" id {statement.id}"
    return f"Schema with{subject}{id_} " + ("exists" if there else "does not exist")


def _schema_exists(statement: ast.AssertSchema, context: StatementContext) -> bool:
    registry = context.env.registry
    if registry is None:
        raise HeadraceError("no schema registry is configured. Set 'ksql.schema.registry.url'.")
    if statement.subject is None:
        return statement.id is not None and registry.by_id(statement.id) is not None
    if statement.id is None:
        return registry.latest(statement.subject) is not None
    return any(v.id == statement.id for v in registry.versions(statement.subject))
