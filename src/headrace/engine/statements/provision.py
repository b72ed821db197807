"""Creates the topics and schemas that a change needs, and removes them if the change fails."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headrace.engine.environment import Environment
from headrace.engine.layouts import subject, unregistered_layout
from headrace.formats.base import RegistryFormat, Side
from headrace.kafka.admin import TopicSpec
from headrace.kafka.client import TopicExistsError
from headrace.model.errors import StatementError
from headrace.model.sources import Source, SourceKind
from headrace.plan.clauses.sink import TopicOptions
from headrace.plan.sources.serdes import SIDES
from headrace.registry.client import RegistryClient
from headrace.registry.schema import (
    Reference,
    RegistryError,
    Schema,
)
from headrace.schemas import SchemaType


class Provisioned:
    """What was made for one change, so that it can be undone."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._topics: list[str] = []
        self._subjects: list[str] = []

    def provision(self, source: Source, options: TopicOptions | None) -> None:
        if options is not None:
            self._topic(source, options)
        self._schemas(source)

    def settle(self) -> None:
        """The change was applied: nothing is removed from now on."""
        self._topics, self._subjects = [], []

    def undo(self, keep: Collection[str] = ()) -> None:
        """Removes what was made, except the topics of `keep`."""
        kept = {subject(topic, side) for topic in keep for side in SIDES}
        for topic in self._topics:
            if topic not in keep:
                self._env.admin.delete(topic)
        for name in self._subjects:
            if self._env.registry is not None and name not in kept:
                self._env.registry.delete_subject(name)

    def _topic(self, source: Source, options: TopicOptions) -> None:
        admin = self._env.admin
        topics = admin.topics(include_internal=True)
        found = topics.get(source.topic)
        if found is not None:
            wanted = options.partitions if options.partitions is not None else found.partitions
            replicas = (
                options.replicas if options.replicas is not None else found.replication_factor
            )
            if (
                source.is_sink and wanted != found.partitions
            ) or replicas != found.replication_factor:
                raise StatementError(
                    f"A Kafka topic with the name '{source.topic}' already exists, with different "
                    f"partition/replica configuration than required. KSQL expects {wanted} "
                    f"partitions (topic has {found.partitions}), and {replicas} replication factor "
                    f"(topic has {found.replication_factor})."
                )
            return
        spec = TopicSpec(
            source.topic, options.partitions or 1, options.replicas or -1, _configs(source, options)
        )
        try:
            admin.create(spec)
        except TopicExistsError:  # another server was faster
            self._topic(source, options)
        else:
            self._topics.append(source.topic)

    def _schemas(self, source: Source) -> None:
        """Registers the schemas of this source's records, all of them or none."""
        wanted = [s for side in SIDES if (s := self._schema(source, side)) is not None]
        for registration in wanted:
            registration.check()
        for registration in wanted:
            is_new, id_ = registration.do()
            if is_new:
                self._subjects.append(registration.subject)
            if registration.id not in (None, id_):
                raise StatementError(
                    f"Schema id registered is {id_} which is different from provided "
                    f"{registration.side.upper()}_SCHEMA_ID {registration.id}.\n"
                    f"Topic: {source.topic}\nSubject: {registration.subject}\n"
                    f"Schema: {registration.schema.text}"
                )

    def _schema(self, source: Source, side: Side) -> _Registration | None:
        """What is to be registered for a side; a source over a topic leaves what is there alone."""
        serde = source.key if side == "key" else source.value
        columns = source.schema.key if side == "key" else source.schema.value
        format_, layout = unregistered_layout(serde, columns, side, source.topic)
        if not columns or not isinstance(format_, RegistryFormat):
            return None
        registry, subject_ = self._env.registry, subject(source.topic, side)
        if registry is None:
            raise StatementError(
                f"Cannot create topic '{source.topic}' with format {format_.name} without "
                "configuring 'ksql.schema.registry.url'"
            )
        id_ = layout.option("schemaId")
        if id_ is not None:
            found = registry.by_id(int(id_))
            if found is None:
                raise _refused(f"Schema {id_} not found")
            return _Registration(registry, side, subject_, found, int(id_))
        if not source.is_sink and registry.latest(subject_) is not None:
            return None
        made = format_.to_registry(layout)
        return _Registration(registry, side, subject_, Schema(made.text, made.type))


def delete_topic(env: Environment, topic: str) -> None:
    """Deletes a topic and the schemas of its records."""
    env.admin.delete(topic)
    if env.registry is not None:
        there = env.registry.subjects()
        for name in (subject(topic, side) for side in SIDES):
            if name in there:
                env.registry.delete_subject(name)


@dataclass(frozen=True)
class _Registration:
    """A schema for a subject; `id` if the statement names it."""

    registry: RegistryClient
    side: Side
    subject: str
    schema: Schema
    id: int | None = None

    def check(self) -> None:
        reasons = self.registry.check_compatibility(self.subject, *self._place)
        if reasons:
            raise _refused(
                "Schema being registered is incompatible with an earlier schema for subject "
                f'"{self.subject}", details: [{", ".join(reasons)}]'
            )

    def do(self) -> tuple[bool, int]:
        """Whether the subject is new, and the schema's id."""
        is_new = self.registry.latest(self.subject) is None
        try:
            return is_new, self.registry.register(self.subject, *self._place)
        except RegistryError as e:
            raise _refused(e.message) from e

    @property
    def _place(self) -> tuple[str, SchemaType, tuple[Reference, ...]]:
        return self.schema.text, self.schema.type, self.schema.references


def _refused(reason: str) -> StatementError:
    return StatementError(f"Could not register schema for topic: {reason}")


def _configs(source: Source, options: TopicOptions) -> dict[str, str]:
    configs = {}
    if options.retention_ms is not None:
        configs["retention.ms"] = str(options.retention_ms)
    if options.cleanup_policy is not None:
        configs["cleanup.policy"] = options.cleanup_policy
    elif source.kind is SourceKind.TABLE:
        both = source.is_sink and source.window is not None
        configs["cleanup.policy"] = "compact,delete" if both else "compact"
    return configs
