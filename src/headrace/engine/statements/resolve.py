"""Fills in the columns that a statement leaves to the schema registry.

A resolved statement means the same tomorrow, whatever the registry says then: it is what is
planned and what the command log keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.engine.layouts import subject, with_references
from headrace.formats import format_named
from headrace.formats.base import RegistryFormat, RegistrySchema, Side
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.schema import Column
from headrace.model.sources import Source, SourceKind
from headrace.model.types import Field
from headrace.plan.sources.properties import DECLARED, WithClause, with_clause
from headrace.plan.sources.serdes import SIDES, declared_format
from headrace.plan.sources.wrapping import (
    WRAP_PROPERTIES,
    WRAP_SETTINGS,
    wrap_property,
    wrap_setting,
)
from headrace.registry.client import RegistryClient
from headrace.registry.schema import RegisteredSchema, RegistryError, Schema
from headrace.sql import ast

# What a registry answers to someone who may not know whether a schema exists.
_HIDDEN = frozenset({401, 403, 404})
_REGISTRY_DOCS = "https://docs.confluent.io/current/schema-registry/docs"
_NOT_CONFIGURED = (
    "KSQL is not configured to use a schema registry. To enable it, please set "
    "ksql.schema.registry.url"
)


@dataclass(frozen=True)
class Resolved:
    """A statement with all columns, and warnings about what the registry overrode."""

    statement: ast.Statement
    warnings: tuple[str, ...] = ()


def resolve_schema(
    statement: ast.Statement,
    settings: Mapping[str, str],
    registry: RegistryClient | None,
    replaced: Source | None = None,
) -> Resolved:
    """The statement with all columns; `replaced` is the source that it replaces, whose single
    fields keep their form."""
    if not isinstance(statement, ast.CreateSource):
        return Resolved(statement)
    clause = with_clause(statement.properties, DECLARED)
    written: dict[Side, tuple[ast.TableElement, ...]] = {}
    properties, warnings = statement.properties, []
    for side in SIDES:
        written[side] = _elements(statement, side)
        left_out = _left_out(statement, clause, side, settings)
        if left_out is None:
            continue
        said = wrap_property(clause, side)
        if said is None and replaced is not None:
            said = _recorded_wrap(replaced, side)
        fields, wrapped = left_out.columns(registry, said)
        written[side] = tuple(_element(statement, side, field) for field in fields)
        if said is None and left_out.differs(fields, wrapped, wrap_setting(settings, side)):
            properties = (*properties, (WRAP_PROPERTIES[side], ast.BooleanLiteral(wrapped)))
            warnings.append(left_out.taken(wrapped))
    if all(written[side] == _elements(statement, side) for side in SIDES):
        return Resolved(statement)
    headers = filter(_is_header, statement.elements)
    elements = (*headers, *written["key"], *written["value"])
    return Resolved(replace(statement, elements=elements, properties=properties), tuple(warnings))


def _recorded_wrap(replaced: Source, side: Side) -> bool | None:
    serde, columns = replaced.side(side)
    return serde.wrap if len(columns) == 1 else None


def check_named_schemas(sink: Source, registry: RegistryClient | None) -> None:
    """Refuses a sink whose columns are not in the schema that its statement names by id."""
    for side in SIDES:
        serde, columns = sink.side(side)
        id_, format_ = serde.property("schemaId"), format_named(serde.format)
        if id_ is None or not columns or not isinstance(format_, RegistryFormat):
            continue
        named = _LeftOut(side, sink.topic, int(id_), format_, dict(serde.properties))
        fields = named.fields(named.schema(registry), format_.wrapped(len(columns), serde.wrap))
        there = [Column(f.name, f.type, columns[0].namespace) for f in fields]
        if lost := [c for place, c in enumerate(columns) if there[place : place + 1] != [c]]:
            raise StatementError(
                f"The following {side} columns are changed, missing or reordered: "
                f"[{_listed(lost)}]. Schema from schema registry is [{_listed(there)}]"
            )


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(map(str, columns))


# ------------------------------------------------------------------------------ the statement


def _is_header(element: ast.TableElement) -> bool:
    return element.constraint is not None and element.constraint.kind in ast.HEADER_KINDS


def _elements(statement: ast.CreateSource, side: Side) -> tuple[ast.TableElement, ...]:
    """The columns that the statement declares for a side."""

    def is_key(element: ast.TableElement) -> bool:
        return element.constraint is not None and element.constraint.kind in ast.KEY_KINDS

    declared = (e for e in statement.elements if not _is_header(e))
    return tuple(e for e in declared if is_key(e) == (side == "key"))


def _element(statement: ast.CreateSource, side: Side, field: Field) -> ast.TableElement:
    if side == "value":
        return ast.TableElement(field.name, field.type)
    table = statement.source_kind is SourceKind.TABLE
    kind = ast.ConstraintKind.PRIMARY_KEY if table else ast.ConstraintKind.KEY
    return ast.TableElement(field.name, field.type, ast.Constraint(kind))


def _left_out(
    statement: ast.CreateSource, clause: WithClause, side: Side, settings: Mapping[str, str]
) -> _LeftOut | None:
    """What the statement leaves to the registry for a side, if it does."""
    named = declared_format(statement, clause, side, settings)
    id_name = f"{side.upper()}_SCHEMA_ID"
    id_ = clause.number(id_name)
    declared = _elements(statement, side)
    if id_ is not None and declared:
        raise StatementError(
            f"Table elements and {id_name} cannot both exist for create statement."
        )
    if declared or not isinstance(named.format, RegistryFormat):
        return None
    return _LeftOut(side, clause.topic, id_, named.format, named.properties)


# ------------------------------------------------------------------------------- the registry


@dataclass(frozen=True)
class _LeftOut:
    """One side whose columns the registry knows: by the topic's subject, or by a schema's id."""

    side: Side
    topic: str
    id: int | None
    format: RegistryFormat
    properties: Mapping[str, str]

    def columns(
        self, registry: RegistryClient | None, said: bool | None
    ) -> tuple[list[Field], bool]:
        """The columns, and whether they lie in an envelope.

        Where nothing is said, the schema shows what it is: a record's fields are the columns,
        anything else is a bare value.
        """
        schema = self.schema(registry)
        wrap = self.format.is_record(schema, self.properties) if said is None else said
        wrapped = self.format.wrapped(1, wrap)
        return self.fields(schema, wrapped), wrapped

    def differs(self, fields: Sequence[Field], wrapped: bool, setting: bool) -> bool:
        """Whether a single field has another form than the setting asks for."""
        return len(fields) == 1 and self.format.wrapped(1, setting) != wrapped

    def taken(self, wrapped: bool) -> str:
        """What to warn of: a schema that wins over the setting."""
        shape = "a record with one field" if wrapped else "a bare value"
        name, setting = WRAP_PROPERTIES[self.side], WRAP_SETTINGS[self.side]
        is_so, is_not = str(wrapped).lower(), str(not wrapped).lower()
        return (
            f"The {self.side} schema for {self._source} is {shape}: {name}={is_so} is taken from "
            f"it, although {setting} is {is_not}. To say so yourself, put {name} into the WITH "
            "clause."
        )

    def fields(self, schema: RegistrySchema, wrapped: bool) -> list[Field]:
        try:
            return self.format.columns_from_registry(
                schema, self.side, wrapped, self.properties, keep_case=self.id is not None
            )
        except StatementError as e:
            raise StatementError(
                f"Unable to verify if the {self.side} schema for {self._source} is compatible with "
                f"ksqlDB.\nReason: {e.message}\n\n"
                "Please see https://github.com/confluentinc/ksql/issues/ to see if this particular "
                "reason is already known.\nIf not, please log a new issue, including this full "
                f"error message.\nSchema:{schema.text}"
            ) from e

    def schema(self, registry: RegistryClient | None) -> RegistrySchema:
        """The schema, of the type that the format reads."""
        try:
            if registry is None:
                raise StatementError(_NOT_CONFIGURED)
            found = self._find(registry)
        except RegistryError as e:
            if e.status in _HIDDEN:
                raise self._missing("" if e.status == 404 else e.message) from None
            raise self._unreachable(e) from e
        except HeadraceError as e:
            raise self._unreachable(e) from e
        if found is None:
            raise self._missing()
        expected = self.format.schema_type
        if found.type != expected:
            raise StatementError(
                f"{self.side.capitalize()} schema is not in the expected format. You may want to "
                f"set {self.side.upper()}_FORMAT to '{found.type}'.\n{self._source}\n"
                f"expected format: {expected}\n"
                f"actual format from Schema Registry: {found.type}"
            )
        return found

    def _find(self, registry: RegistryClient) -> RegistrySchema | None:
        if self.id is not None:
            found: Schema | RegisteredSchema | None = registry.by_id(self.id)
        else:
            found = registry.latest(subject(self.topic, self.side))
        return None if found is None else with_references(registry, found)

    @property
    def _source(self) -> str:
        """Where the schema comes from, as messages say it."""
        return f"topic: {self.topic}" + ("" if self.id is None else f", schema id: {self.id}")

    def _unreachable(self, cause: HeadraceError) -> StatementError:
        return StatementError(
            f"Schema registry fetch for topic {self.side} request failed for {self._source}\n"
            f"Caused by: {cause.message}"
        )

    def _missing(self, cause: str = "") -> StatementError:
        id_ = "" if self.id is None else f"Schema Id: {self.id}\n"
        told = f"\nCaused by: {cause}" if cause else ""
        return StatementError(
            f"Schema for message {self.side}s on topic '{self.topic}' does not exist in the Schema "
            f"Registry.\nSubject: {subject(self.topic, self.side)}\n{id_}"
            "Possible causes include:\n"
            "- The topic itself does not exist\n"
            "\t-> Use SHOW TOPICS; to check\n"
            "- Messages on the topic are not serialized using a format Schema Registry supports\n"
            f"\t-> Use PRINT '{self.topic}' FROM BEGINNING; to verify\n"
            "- Messages on the topic have not been serialized using a Confluent Schema Registry "
            "supported serializer\n"
            f"\t-> See {_REGISTRY_DOCS}/serializer-formatter.html\n"
            "- The schema is registered on a different instance of the Schema Registry\n"
            "\t-> Use the REST API to list available subjects"
            f"\t{_REGISTRY_DOCS}/api.html#get--subjects\n"
            "- You do not have permissions to access the Schema Registry.\n"
            f"\t-> See {_REGISTRY_DOCS}/security.html{told}"
        )
