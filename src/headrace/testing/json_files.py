"""ksqlDB's JSON test files: `{"tests": [{"name", "statements", "inputs", "outputs", …}]}`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from headrace.model.errors import HeadraceError
from headrace.testing.cases import (
    Case,
    CaseRecord,
    CaseReference,
    CaseSchema,
    CaseTopic,
    ExpectedError,
    ExpectedSource,
    ExpectedTopic,
    Json,
    RecordCase,
    ServerCase,
    Window,
)
from headrace.testing.statement_texts import inserts_values

# The release whose behaviour the cases are run for.
RELEASE = (8, 0, 0)
# A case is multiplied by each of these: the placeholder stands in the whole of it.
PLACEHOLDERS = {"format": "{FORMAT}", "config": "{CONFIG}"}


def load_json(path: Path) -> Json:
    """Numbers with a fraction keep their digits."""
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except (OSError, ValueError) as e:
        raise HeadraceError(f"{path} cannot be read as JSON: {e}") from None


def is_json_tests(data: Json) -> bool:
    return isinstance(data, dict) and isinstance(data.get("tests"), list)


def read_json_cases(data: Json, file: str) -> Iterator[Case]:
    for test in data["tests"]:
        for name, expanded in _expanded(str(test.get("name", "")), test):
            yield _case(file, name, expanded)


def _expanded(name: str, test: Json) -> Iterator[tuple[str, Json]]:
    """The case once for each of its formats, and each of its configs."""
    for list_name, placeholder in PLACEHOLDERS.items():
        choices = test.get(list_name)
        if choices:
            rest = {k: v for k, v in test.items() if k != list_name}
            for choice in choices:
                text = str(choice)
                yield from _expanded(f"{name} - {text}", _replaced(rest, placeholder, text))
            return
    yield name, test


def _replaced(value: Json, placeholder: str, text: str) -> Json:
    match value:
        case str():
            return value.replace(placeholder, text)
        case list():
            return [_replaced(v, placeholder, text) for v in value]
        case dict():
            return {
                k.replace(placeholder, text): _replaced(v, placeholder, text)
                for k, v in value.items()
            }
    return value


def _case(file: str, name: str, test: Json) -> Case:
    if "responses" in test or "expectedError" in test or _inserts(test):
        return _server_case(file, name, test)
    post = test.get("post") or {}
    return RecordCase(
        file,
        name,
        skip=_why_skipped(test),
        error=_error(test.get("expectedException")),
        statements=tuple(test.get("statements", ())),
        properties=test.get("properties") or {},
        topics=tuple(map(_topic, test.get("topics") or ())),
        inputs=tuple(map(input_record, test.get("inputs") or ())),
        outputs=tuple(map(output_record, test.get("outputs") or ())),
        sources=tuple(map(_source, post.get("sources") or ())),
        sink_topics=tuple(map(_sink_topic, (post.get("topics") or {}).get("topics") or ())),
    )


def _inserts(test: Json) -> bool:
    """Whether the records that it expects come from INSERT VALUES, which only a server writes."""
    return "expectedException" not in test and any(map(inserts_values, test.get("statements", ())))


def _server_case(file: str, name: str, test: Json) -> ServerCase:
    error = test.get("expectedError")
    return ServerCase(
        file,
        name,
        skip=_why_skipped(test),
        error=_error(error),
        statements=tuple(test.get("statements", ())),
        properties=test.get("properties") or {},
        topics=tuple(map(_topic, test.get("topics") or ())),
        inputs=tuple(map(input_record, test.get("inputs") or ())),
        outputs=tuple(map(output_record, test.get("outputs") or ())),
        responses=tuple(test.get("responses") or ()),
        waits_for_query=bool((test.get("inputConditions") or {}).get("waitForActivePushQuery")),
        status=(error or {}).get("status"),
    )


def _why_skipped(test: Json) -> str | None:
    if test.get("enabled") is False:
        return "the case is disabled"
    versions = test.get("versions") or {}
    if "max" in versions and _version(versions["max"]) < RELEASE:
        return f"the case is about releases up to {versions['max']}"
    return None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _error(expected: Json) -> ExpectedError | None:
    if expected is None:
        return None
    return ExpectedError(str(expected.get("message") or ""), str(expected.get("type") or ""))


def input_record(record: Json) -> CaseRecord:
    """A record to be written; its time is 0 if the file has none."""
    return output_record({"timestamp": 0, **record})


def output_record(record: Json) -> CaseRecord:
    window = record.get("window")
    return CaseRecord(
        topic=record["topic"],
        key=record.get("key"),
        value=record.get("value"),
        timestamp=record.get("timestamp"),
        window=_window(window) if window else None,
        headers=tuple(_header(h) for h in record.get("headers") or ()),
    )


def _window(window: Json) -> Window:
    session = str(window.get("type", "")).lower() == "session"
    return Window(int(window["start"]), window.get("end"), session)


def _header(header: Json) -> tuple[str, bytes | None]:
    value = header["VALUE"]
    return header["KEY"], None if value is None else base64.b64decode(value)


def _topic(topic: Json) -> CaseTopic:
    return CaseTopic(
        name=topic["name"],
        partitions=topic.get("partitions"),
        replicas=topic.get("replicas"),
        key=_schema(topic, "key"),
        value=_schema(topic, "value"),
    )


def _schema(topic: Mapping[str, Json], side: str) -> CaseSchema | None:
    schema = topic.get(f"{side}Schema")
    if schema is None:
        return None
    format_ = str(topic.get(f"{side}Format") or "AVRO").upper()
    return CaseSchema(
        _text(schema, format_),
        format_,
        topic.get(f"{side}SchemaId"),
        _references(topic.get(f"{side}SchemaReferences") or ()),
    )


def _references(references: Sequence[Json]) -> tuple[CaseReference, ...]:
    return tuple(
        CaseReference(
            r["name"], r.get("subject", r["name"]), _text(r["schema"], r.get("format", "AVRO"))
        )
        for r in references
    )


def _text(schema: Json, format_: str) -> str:
    """A schema's text: a protobuf file as it is, the others as JSON."""
    return str(schema) if format_ == "PROTOBUF" else json.dumps(schema, default=float)


def _source(source: Json) -> ExpectedSource:
    key_format = source.get("keyFormat") or {}
    if isinstance(key_format, str):
        key_format = {"format": key_format}
    return ExpectedSource(
        name=source["name"],
        kind=source["type"].upper(),
        schema=source.get("schema"),
        key_format=key_format.get("format"),
        value_format=_format_name(source.get("valueFormat")),
        key_features=_features(source, "keyFeatures"),
        value_features=_features(source, "valueFeatures"),
        window=key_format.get("windowType"),
        window_size_ms=key_format.get("windowSize"),
        read_only=source.get("isSource"),
    )


def _features(source: Json, name: str) -> frozenset[str] | None:
    return frozenset(source[name]) if name in source else None


def _format_name(given: Json) -> str | None:
    return given.get("format") if isinstance(given, dict) else given


def _sink_topic(topic: Json) -> ExpectedTopic:
    return ExpectedTopic(
        name=topic["name"],
        partitions=topic.get("partitions"),
        key_format=_format_name(topic.get("keyFormat")),
        value_format=_format_name(topic.get("valueFormat")),
        key_schema=topic.get("keySchema"),
        value_schema=topic.get("valueSchema"),
    )
