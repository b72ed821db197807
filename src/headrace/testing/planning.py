"""Plans cases, and checks errors, sources and topics."""

from __future__ import annotations

import json

from headrace.engine.layouts import unregistered_layout
from headrace.formats import FORMATS
from headrace.formats.base import Feature, RegistryFormat, Side
from headrace.model.errors import HeadraceError
from headrace.model.schema import Column, Namespace, Schema
from headrace.model.settings import Settings
from headrace.model.sources import Serde, Source
from headrace.model.types import quote
from headrace.sql import ast
from headrace.sql.parser import parse_statement
from headrace.testing.cases import ExpectedSource, ExpectedTopic, RecordCase
from headrace.testing.outcomes import CaseFailure, error_text
from headrace.testing.rehearsal import Rehearsal, rehearsal_of

# Topics that Kafka Streams makes for itself, and Spark has no use for.
_INTERNAL = ("-repartition", "-changelog")


def check_planning(case: RecordCase, settings: Settings) -> Rehearsal | None:
    """Plans all statements; the rehearsal, if there is something to run after it."""
    rehearsal = rehearsal_of(case, settings)
    try:
        rehearsal.run(case.script)
    except HeadraceError as e:
        check_error(case, e)
        return None
    if case.error is not None and not case.error.comes_with_data:
        raise CaseFailure(
            "the statements should fail", case.error.message or case.error.kind, "no error"
        )
    for source in case.sources:
        _check_source(source, rehearsal)
    for topic in case.sink_topics:
        if not topic.name.endswith(_INTERNAL):
            _check_topic(topic, rehearsal)
    return rehearsal


def check_error(case: RecordCase, error: HeadraceError) -> None:
    text = error_text(error)
    if case.error is None:
        raise CaseFailure("a statement failed", "no error", text) from error
    if case.error.message not in text:
        raise CaseFailure(
            "the error has another text", case.error.message or case.error.kind, text
        ) from error


def _check_source(expected: ExpectedSource, rehearsal: Rehearsal) -> None:
    source = rehearsal.catalog.source(expected.name)
    if source is None:
        raise CaseFailure("a source is missing", f"{expected.kind} {expected.name}", "nothing")
    window = source.window
    facts: list[tuple[str, object, object]] = [
        ("type", expected.kind, source.kind.value),
        (
            "schema",
            expected.schema and str(_schema(expected.schema)),
            str(source.schema),
        ),
        ("key format", expected.key_format, source.key.format),
        ("value format", expected.value_format, source.value.format),
        ("key features", expected.key_features, _features(source.key, source, "key")),
        ("value features", expected.value_features, _features(source.value, source, "value")),
        ("window type", expected.window, window.type.value if window else None),
        ("window size", expected.window_size_ms, window.size_ms if window else None),
        ("read-only", expected.read_only, source.read_only),
    ]
    for what, wanted, found in facts:
        if wanted is not None and wanted != found:
            raise CaseFailure(f"{expected.name} has another {what}", _shown(wanted), _shown(found))


def _schema(text: str) -> Schema:
    """A schema as test files write it: columns, of which the key's are marked."""
    kind = "TABLE" if "PRIMARY KEY" in text.upper() else "STREAM"
    statement = parse_statement(f"CREATE {kind} S ({text});")
    assert isinstance(statement, ast.CreateSource)
    return Schema.of(
        Column(e.name, e.type, _namespace(e.constraint), _header_key(e.constraint))
        for e in statement.elements
    )


def _namespace(constraint: ast.Constraint | None) -> Namespace:
    if constraint is None:
        return Namespace.VALUE
    return Namespace.HEADERS if constraint.kind in ast.HEADER_KINDS else Namespace.KEY


def _header_key(constraint: ast.Constraint | None) -> str | None:
    return None if constraint is None else constraint.header_key


def _features(serde: Serde, source: Source, side: Side) -> frozenset[str]:
    """What was chosen of what the format lets one choose. To wrap is ksqlDB's default, which it
    does not record."""
    columns = source.schema.key if side == "key" else source.schema.value
    format_ = FORMATS[serde.format]
    if len(columns) != 1 or not format_.wraps_or_not or serde.wrap is not False:
        return frozenset()
    return frozenset({Feature.UNWRAP.value})


def _shown(value: object) -> str:
    return ", ".join(sorted(value)) if isinstance(value, frozenset) else str(value)


def _check_topic(expected: ExpectedTopic, rehearsal: Rehearsal) -> None:
    sources = [s for s in rehearsal.catalog.sources() if s.topic == expected.name]
    if not sources:
        raise CaseFailure("a topic is missing", expected.name, "nothing")
    source = sources[-1]
    facts: list[tuple[str, object, object]] = [
        ("partitions", expected.partitions, rehearsal.topics.partitions(expected.name)),
        ("key format", expected.key_format, source.key.format),
        ("value format", expected.value_format, source.value.format),
    ]
    sides: list[tuple[Side, object]] = [
        ("key", expected.key_schema),
        ("value", expected.value_schema),
    ]
    for side, schema in sides:
        if schema is not None:
            facts.append((f"{side} schema", schema, _registered(source, side)))
    for what, wanted, found in facts:
        if wanted is not None and wanted != found:
            raise CaseFailure(
                f"Topic {quote(expected.name)} has other {what}", _shown(wanted), _shown(found)
            )


def _registered(source: Source, side: Side) -> object:
    """The schema that is registered for a source's records."""
    serde = source.key if side == "key" else source.value
    columns = source.schema.key if side == "key" else source.schema.value
    format_, layout = unregistered_layout(serde, columns, side, source.topic)
    if not isinstance(format_, RegistryFormat):
        return None
    schema = format_.to_registry(layout)
    return schema.text if schema.type == "PROTOBUF" else json.loads(schema.text)
