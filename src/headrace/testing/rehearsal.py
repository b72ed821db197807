"""Plans statements one after another, with topics and a registry that exist in memory only.

It is the planning of the server (`engine.changes`), so what passes here is what a server accepts;
neither Kafka nor Spark is started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from headrace.catalog.catalog import Catalog
from headrace.engine.statements.changes import (
    Change,
    Intent,
    NewQuery,
    is_change,
    plan_change,
)
from headrace.engine.statements.inserts import insert_target, inserted_row
from headrace.engine.statements.planning_facts import check_promises
from headrace.engine.statements.request_session import Session
from headrace.engine.statements.resolve import Resolved, check_named_schemas, resolve_schema
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.settings import SETTINGS, Settings, canonical, passes_through
from headrace.model.sources import Source
from headrace.plan import nodes as n
from headrace.plan.clauses.sink import topic_options
from headrace.plan.language.binder import Binder
from headrace.plan.sources.ddl import plan_create_source
from headrace.plan.sources.properties import DECLARED, with_clause
from headrace.registry.client import RegistryClient
from headrace.sql import ast
from headrace.sql.parser import ParsedStatement, StatementText, parse, split
from headrace.sql.variables import substitute
from headrace.testing.cases import CaseTopic, RecordCase
from headrace.testing.schemas import registry_of
from headrace.testing.sql_files import Step

# What tests run under, besides a server's defaults; the properties of a case come on top.
TEST_SETTINGS: Mapping[str, object] = {
    "ksql.service.id": "some.ksql.service.id",
    "ksql.streams.cache.max.bytes.buffering": 0,
    "ksql.streams.auto.offset.reset": "earliest",
    "ksql.create.or.replace.enabled": True,
    "ksql.headers.enabled": True,
}
DEFAULT_PARTITIONS = 4


class PretendedTopics:
    """Facts for planning: the topics of a case, and its registry in memory."""

    def __init__(self, topics: Sequence[CaseTopic] = (), declared: Iterable[Source] = ()) -> None:
        self.registry: RegistryClient = registry_of(topics, declared)
        self.subjects = frozenset(
            f"{topic.name}-{side}"
            for topic in topics
            for side, schema in (("key", topic.key), ("value", topic.value))
            if schema is not None
        )
        self._partitions = {t.name: t.partitions or DEFAULT_PARTITIONS for t in topics}
        # Where statements are only planned, no record is ever written.
        self.has_records: Callable[[str], bool] = lambda topic: False

    def resolve(
        self, statement: ast.Statement, settings: Mapping[str, str], replaced: Source | None
    ) -> Resolved:
        return resolve_schema(statement, settings, self.registry, replaced)

    def check_sink(self, sink: Source) -> None:
        check_named_schemas(sink, self.registry)

    def check_query(self, query: NewQuery) -> None:
        check_promises(query)

    def partitions(self, topic: str) -> int | None:
        return self._partitions.get(topic)

    def add(self, topic: str, partitions: int | None) -> None:
        self._partitions.setdefault(topic, partitions or DEFAULT_PARTITIONS)


@dataclass
class Rehearsal:
    """The catalog as it becomes, and the changes that made it so."""

    topics: PretendedTopics
    settings: Settings
    session: Session = field(default_factory=Session)
    catalog: Catalog = field(default_factory=Catalog)
    changes: list[Change] = field(default_factory=list)

    def run(self, text: str) -> list[Change]:
        """Plans the statements of a text. Errors carry the statement that they are about."""
        planned = []
        for piece in split(text):
            try:
                change = self._plan(self._parse(placed(piece)))
            except StatementError as e:
                e.statement = e.statement or piece.text
                raise
            if change is not None:
                planned.append(change)
        return planned

    def inserted(
        self, statement: ast.InsertValues, spark: SparkSession | None
    ) -> tuple[Source, dict[str, object]]:
        """Where INSERT VALUES goes, and what it inserts."""
        service_id = self.settings.text("ksql.service.id") or ""
        source = insert_target(statement, self.catalog, service_id, log_topic="")
        try:
            return source, inserted_row(statement, source, self.binder(), spark)
        except HeadraceError as e:
            reason = f"Failed to insert values into '{statement.target}'. {e}"
            raise StatementError(reason) from None

    def binder(self) -> Binder:
        """Of the expressions of INSERT VALUES."""
        return Binder.of({}, self.catalog.type, self.session.settings(self.settings))

    def texts(self) -> dict[str, str]:
        """The settings in force as texts, which is what planning reads."""
        settings = self.session.settings(self.settings)
        return {k: _text(v) for k, v in settings.items() if v is not None}

    def _parse(self, text: str) -> ParsedStatement:
        return parse(substitute(text, self.session.variables))[0]

    def _plan(self, parsed: ParsedStatement) -> Change | None:
        statement = parsed.statement
        if self.session.takes(statement):
            return None
        if isinstance(statement, ast.InsertValues):
            self.inserted(statement, None)
            return None
        if not is_change(statement):
            raise StatementError(f"A test cannot run this statement: {type(statement).__name__}")
        self._expect_topic(statement)
        intent = Intent(parsed.text, self.texts(), len(self.changes), self._plan_of)
        change = plan_change(statement, self.catalog, intent, self.topics)
        self.catalog = change.catalog
        if change.creates is not None:
            partitions = change.topic.partitions if change.topic is not None else None
            self.topics.add(change.creates.topic, partitions)
        self.changes.append(change)
        return change

    def declared(self, text: str) -> Iterator[Source]:
        """The sources whose columns the statements of a text write out."""
        for piece in split(text):
            with suppress(HeadraceError):  # it is told when its turn comes
                statement = self._parse(piece.text).statement
                if isinstance(statement, ast.CreateSource) and statement.elements:
                    yield plan_create_source(statement, self.catalog, self.texts())

    def _expect_topic(self, statement: ast.Statement) -> None:
        """A test need not say that the topics of its sources exist."""
        if not isinstance(statement, ast.CreateSource):
            return
        try:
            clause = with_clause(statement.properties, DECLARED)
            topic, partitions = clause.text("KAFKA_TOPIC"), topic_options(clause, None).partitions
        except HeadraceError:
            return  # planning says so too, and better
        if topic is not None:
            self.topics.add(topic, partitions)

    def _plan_of(self, query_id: str) -> n.Node | None:
        for change in reversed(self.changes):
            if change.starts is not None and change.starts.id == query_id:
                return change.starts.planned.node
        return None


def rehearsal_of(case: RecordCase, settings: Settings) -> Rehearsal:
    """A rehearsal of a case, before its first statement."""
    settings = settings.override(known(case.properties))
    first = Rehearsal(PretendedTopics(), settings)
    has_schemas = any(topic.key or topic.value for topic in case.topics)
    topics = PretendedTopics(case.topics, first.declared(case.script) if has_schemas else ())
    for record in case.inputs:
        topics.add(record.topic, None)
    return Rehearsal(topics, settings)


def known(properties: Mapping[str, object]) -> dict[str, object]:
    """The properties without those that switch a part of ksqlDB which we do not have."""
    return {k: v for k, v in properties.items() if k not in _WITHOUT_SENSE and not _is_foreign(k)}


def _is_foreign(name: str) -> bool:
    return name.startswith("ksql.") and canonical(name) not in SETTINGS and not passes_through(name)


_WITHOUT_SENSE = frozenset(
    {
        "ksql.new.query.planner.enabled",
        "ksql.streams.__emit.interval.ms.kstreams.windowed.aggregation__",
        "ksql.streams.topology.optimization",
        "ksql.sink.partitions",
        "ksql.sink.replicas",
        "use.exact.numeric.comparison",
    }
)


def placed(piece: StatementText | Step) -> str:
    """The statement behind as much white space as stands before it in its text, so that errors
    tell its place there."""
    return "\n" * (piece.position.line - 1) + " " * (piece.position.column - 1) + piece.text


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
