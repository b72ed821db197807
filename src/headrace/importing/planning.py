"""Plans statements as the server would, with what is known of topics and schemas; no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.catalog.catalog import Catalog
from headrace.engine.statements.changes import Change, Intent, NewQuery, plan_change
from headrace.engine.statements.planning_facts import check_promises
from headrace.engine.statements.request_session import setting_texts
from headrace.engine.statements.resolve import Resolved, check_named_schemas, resolve_schema
from headrace.formats.base import RegistryFormat
from headrace.kafka.admin import TopicAdmin
from headrace.model.errors import StatementError
from headrace.model.settings import Settings
from headrace.model.sources import Source
from headrace.plan.sources.properties import DECLARED, with_clause
from headrace.plan.sources.serdes import declared_format
from headrace.registry.client import RegistryClient
from headrace.sql import ast
from headrace.sql.printer import format_statement


class Facts:
    """What planning asks. Without Kafka every topic is there, and what is joined lies alike."""

    def __init__(self, admin: TopicAdmin | None, registry: RegistryClient | None) -> None:
        self._admin = admin
        self._registry = registry
        self._made: dict[str, int] = {}

    def resolve(
        self, statement: ast.Statement, settings: Mapping[str, str], replaced: Source | None
    ) -> Resolved:
        if self._registry is None and isinstance(statement, ast.CreateSource):
            _check_columns(statement, settings)
            return Resolved(statement)
        return resolve_schema(statement, settings, self._registry, replaced)

    def check_sink(self, sink: Source) -> None:
        if self._registry is not None:
            check_named_schemas(sink, self._registry)

    def check_query(self, query: NewQuery) -> None:
        check_promises(query)

    def partitions(self, topic: str) -> int | None:
        if self._admin is None:
            return 1
        if topic in self._made:
            return self._made[topic]
        return self._admin.describe(topic).partitions if self._admin.exists(topic) else None

    def has_records(self, topic: str) -> bool:
        return False  # nothing is replaced

    def pretend(self, change: Change) -> None:
        if change.creates is not None and change.topic is not None:
            known = self.partitions(change.creates.topic)
            self._made[change.creates.topic] = known or change.topic.partitions or 1


def _check_columns(statement: ast.CreateSource, settings: Mapping[str, str]) -> None:
    """Refuses columns that only a schema registry knows."""
    clause = with_clause(statement.properties, DECLARED)
    declared = [e for e in statement.elements if not _is_of(e, ast.HEADER_KINDS)]
    values = [e for e in declared if not _is_of(e, ast.KEY_KINDS)]
    named = declared_format(statement, clause, "value", settings)
    if not values and isinstance(named.format, RegistryFormat):
        raise StatementError(
            f"Its columns are those of the schema that is registered for topic '{clause.topic}'. "
            "Say where the schema registry is: --schema-registry URL."
        )


def _is_of(element: ast.TableElement, kinds: frozenset[ast.ConstraintKind]) -> bool:
    return element.constraint is not None and element.constraint.kind in kinds


@dataclass
class Rehearsal:
    """The catalog as it becomes, statement by statement."""

    facts: Facts
    catalog: Catalog = field(default_factory=Catalog)
    number: int = 0

    def plan(self, statement: ast.Statement, settings: Mapping[str, str]) -> Change:
        """The change that a statement would make; nothing is changed yet."""
        texts = setting_texts(Settings(settings))
        intent = Intent(format_statement(statement), texts, self.number)
        return plan_change(statement, self.catalog, intent, self.facts)

    def accept(self, change: Change) -> None:
        self.facts.pretend(change)
        self.catalog = change.catalog
        self.number += 1
