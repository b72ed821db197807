"""Cases for a server: statements and queries in order, each with its response.

They run on an engine of their own, on the shared Kafka and Spark. Its topics get a prefix, so that
cases do not meet.
"""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from google.protobuf.message_factory import GetMessageClass
from pyspark.errors import StreamingQueryException

from headrace.engine.engine import Engine
from headrace.engine.environment import Environment
from headrace.engine.queries.persistent import PersistentQuery
from headrace.engine.queries.push import PushQuery
from headrace.engine.tables.pull import PullAnswer
from headrace.formats.json import text as jackson
from headrace.kafka.admin import TopicSpec
from headrace.kafka.records import RecordReader, RecordWriter
from headrace.model.errors import HeadraceError
from headrace.model.requests import Request
from headrace.schemas import protobuf
from headrace.server.bodies import parse_json
from headrace.server.response_formats import ProtobufAnswer, StreamedAnswer
from headrace.spark.runtime.session import another_session
from headrace.testing.cases import Json, ServerCase
from headrace.testing.comparing import same
from headrace.testing.outcomes import CaseFailure, error_text
from headrace.testing.outputs import check_records
from headrace.testing.rehearsal import TEST_SETTINGS, known
from headrace.testing.schemas import registry_of
from headrace.testing.statement_texts import is_query, topics_of, values_of, with_topic_prefix
from headrace.testing.topic_codecs import TopicCodecs

# Of a topic that a case says nothing of: rows of a pull query come partition by partition.
PARTITIONS = 4
# How long an answer may take that does not come by itself.
PATIENCE_SECONDS = 30.0
STEP_SECONDS = 0.2


class RestCase:
    """One case on an engine of its own."""

    def __init__(
        self, world: Environment, case: ServerCase, label: str, writer: RecordWriter
    ) -> None:
        self._prefix = f"{label}-"
        topics = [replace(t, name=self._prefix + t.name) for t in case.topics]
        settings = world.settings.override(
            {
                "ksql.service.id": f"{label}_",
                "ksql.output.topic.name.prefix": self._prefix,
                "ksql.logging.processing.stream.auto.create": False,
                "ksql.query.push.v2.enabled": True,  # as in ksqlDB's own tests
            }
        )
        self._world = replace(
            world,
            settings=settings,
            registry=registry_of(topics),
            data_dir=world.data_dir / label,
        )
        self._case = case
        self._topics = topics
        self._writer = writer
        self._properties = {**_CLIENT_SETTINGS, **known(case.properties)}

    def run(self) -> None:
        with _opened(self._world) as engine:
            self._engine = engine
            subjects = [f"{t.name}-{side}" for t in self._topics for side in ("key", "value")]
            self._codecs = TopicCodecs(self._world, lambda: engine.catalog, subjects)
            self._create_topics()
            self._fed = False
            try:
                self._ask()
                self._feed()
            except HeadraceError as e:
                self._check_error(e)
                return
            if self._case.error is not None:
                raise CaseFailure("a statement should fail", self._case.error.message, "no error")
            self._check_outputs()

    def _create_topics(self) -> None:
        partitions = {t.name: t.partitions or PARTITIONS for t in self._topics}
        for statement in self._case.statements:
            told = next(values_of(statement, "PARTITIONS"), None)
            for name in topics_of(statement):
                count = PARTITIONS if told is None else int(told.text)
                partitions.setdefault(self._prefix + name, count)
        for record in self._case.inputs:
            partitions.setdefault(self._prefix + record.topic, PARTITIONS)
        self._is_split = any(n > 1 for n in partitions.values())
        if partitions:
            self._world.admin.create_all([TopicSpec(name, n) for name, n in partitions.items()])

    # ------------------------------------------------------------------------ statements

    def _ask(self) -> None:
        answers = iter(self._case.responses)
        for statement in self._case.statements:
            text = with_topic_prefix(statement, self._prefix)
            if is_query(text):
                self._query(text, next(answers, None))
                continue
            entities = self._engine.execute(Request(text, self._properties))
            for entity in entities:
                _check_entity(entity.to_json(), next(answers, None))

    def _query(self, text: str, response: Json) -> None:
        answer = response or {}
        form = ProtobufAnswer if "queryProto" in answer else StreamedAnswer
        expected = answer.get("queryProto", answer.get("query"))
        request = Request(text, self._properties)
        if self._case.waits_for_query:
            query = self._engine.query(request)
            self._feed()
        else:
            self._feed()
            query = self._engine.query(request)
        try:
            lines = _lines(query, form, len(expected or ()))
        finally:
            query.close()
        if form is ProtobufAnswer and expected is not None:
            expected, lines = _sorted_protobuf(expected), _sorted_protobuf(_as_texts(lines))
        if expected is None:
            return
        if isinstance(query, PullAnswer) or self._is_split:
            lines = _in_order_of(expected, lines)
        if not _same_lines(expected, lines):
            raise CaseFailure(f"other rows: {text}", _shown(expected), _shown(lines))

    # --------------------------------------------------------------------------- records

    def _feed(self) -> None:
        """Writes the inputs, once, and lets the persistent queries work them off."""
        if self._fed:
            return
        self._fed = True
        for record in self._case.inputs:
            here = replace(record, topic=self._prefix + record.topic)
            self._writer.write(self._codecs.encoded(here))
        for query in self._engine.queries:
            work_off(query)

    def _check_outputs(self) -> None:
        reader = RecordReader(self._world.kafka, self._world.admin)
        for topic in dict.fromkeys(record.topic for record in self._case.outputs):
            there = self._prefix + topic
            expected = [r for r in self._case.outputs if r.topic == topic]
            check_records(self._codecs, there, expected, list(reader.read(there)))

    def _check_error(self, error: HeadraceError) -> None:
        text = error_text(error).replace(self._prefix, "")
        expected = self._case.error
        if expected is None:
            raise CaseFailure("a statement failed", "no error", text) from error
        if expected.message not in text:
            raise CaseFailure("the error has another text", expected.message, text) from error
        status = self._case.status
        if status is not None and status != error.error_code // 100:
            raise CaseFailure("another status", str(status), str(error.error_code // 100))


def work_off(query: PersistentQuery) -> None:
    """Waits until a query has read all there is. One whose records want another plan fails first,
    and the engine starts it again: only a failure that the engine takes for one counts."""
    failure: StreamingQueryException | None = None
    seen, told = None, list(query.errors)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (running := query.streaming) is not None or failure is not None:
        if running is not None and running is not seen:
            seen = running
            try:
                running.processAllAvailable()
                return
            except StreamingQueryException as e:
                failure = e
        if failure is not None and (query.errors != told or time.monotonic() > deadline):
            raise failure
        time.sleep(STEP_SECONDS)


# What a client of ksqlDB's own tests sets for each request.
_CLIENT_SETTINGS: Mapping[str, object] = {
    "auto.offset.reset": "earliest",
    "ksql.streams.cache.max.bytes.buffering": TEST_SETTINGS[
        "ksql.streams.cache.max.bytes.buffering"
    ],
}


@contextmanager
def _opened(world: Environment) -> Iterator[Engine]:
    # Cases run side by side, and their queries have the same names: each has a session of its own.
    engine = Engine(replace(world, spark=another_session(world.spark)))
    engine.open()
    try:
        yield engine
    finally:
        engine.close()
        with suppress(HeadraceError):  # it only spares the broker open files
            own = (engine.log.topic, engine.heartbeat.topic, *_topics_of(world))
            world.admin.delete_all(own)


def _topics_of(world: Environment) -> list[str]:
    prefix = world.settings.text("ksql.output.topic.name.prefix") or ""
    return [name for name in world.admin.topics() if name.startswith(prefix)]


def _check_entity(entity: Json, response: Json) -> None:
    expected = (response or {}).get("admin")
    if expected is not None and not _contained(expected, entity):
        raise CaseFailure("another answer", _shown([expected]), _shown([entity]))


def _contained(expected: Json, actual: Json) -> bool:
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(name in actual and _contained(v, actual[name]) for name, v in expected.items())
    return same(expected, actual)


# ------------------------------------------------------------------------------ answers


def _lines(query: PushQuery | PullAnswer, form: type[StreamedAnswer], count: int) -> list[Json]:
    """The answer's lines, until it ends, or as many are there as are waited for."""
    writer = form(query)
    parts = [writer.start()]
    deadline = time.monotonic() + PATIENCE_SECONDS
    push = isinstance(query, PushQuery)
    told = 1
    end = "]"
    while time.monotonic() < deadline and not (push and 0 < count <= told):
        batch = query.next_batch(STEP_SECONDS)
        if batch is None:
            end = writer.end(query.final_message)
            break
        told += len(batch)
        parts.append(writer.rows(batch))
    text = "".join(parts)
    lines = parse_json((text.removesuffix(",\n") if end == "]" else text) + end)
    assert isinstance(lines, list)
    return lines


def _as_texts(lines: Sequence[Json]) -> list[Json]:
    """Rows in Protobuf as cases write them: messages in their text form."""
    schema = lines[0]["header"]["protoSchema"]
    message = GetMessageClass(protobuf.parse(schema, {}).message())
    return [
        {"row": str(message.FromString(b64decode(line["row"]["protobufBytes"])))}
        if "row" in line
        else line
        for line in lines
    ]


def _sorted_protobuf(lines: Sequence[Json]) -> list[Json]:
    """An answer in Protobuf: neither rows nor the entries of their maps have an order."""
    rows = sorted("\n".join(sorted(line["row"].splitlines())) for line in lines if "row" in line)
    return [
        *({"header": {"schema": x["header"]["protoSchema"], "queryId": ""}} for x in lines[:1]),
        *({"row": row} for row in rows),
        *(x for x in lines[1:] if "row" not in x),
    ]


def _in_order_of(expected: Sequence[Json], lines: Sequence[Json]) -> list[Json]:
    """The lines as they are expected, if they are: neither rows of a pull query nor those of
    several partitions have an order."""
    left = list(lines)
    ordered = []
    for line in expected:
        place = next((i for i, found in enumerate(left) if _same_line(line, found)), None)
        if place is not None:
            ordered.append(left.pop(place))
    return [*ordered, *left]


def _same_lines(expected: Sequence[Json], actual: Sequence[Json]) -> bool:
    return len(expected) == len(actual) and all(
        _same_line(e, a) for e, a in zip(expected, actual, strict=True)
    )


def _same_line(expected: Json, actual: Json) -> bool:
    header = expected.get("header")
    if header is None or "header" not in actual:
        return same(expected, actual)
    found = actual["header"]
    start = header.get("queryId|starts_with", "")
    return bool(header.get("schema") == found["schema"] and found["queryId"].startswith(start))


def _shown(lines: Sequence[Json]) -> str:
    return "\n".join(map(jackson.dump, lines))
