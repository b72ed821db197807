"""Makes what a change needs outside: topics and schemas; and takes it back if it was in vain."""

from __future__ import annotations

from headrace.engine.layouts import plain_layout, subject
from headrace.engine.world import World
from headrace.formats.base import RegistryFormat, Side
from headrace.model.errors import StatementError
from headrace.model.sources import Source, SourceKind
from headrace.plan.sink import TopicOptions
from headrace.topics.admin import TopicSpec

SIDES: tuple[Side, Side] = ("key", "value")
DAY_MS = 86_400_000


class Provisioned:
    """What was made for one change, so that it can be undone."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._topics: list[str] = []
        self._subjects: list[str] = []

    def provision(self, source: Source, options: TopicOptions | None) -> None:
        self._schemas(source)
        if options is not None:
            self._topic(source, options)

    def undo(self) -> None:
        for topic in self._topics:
            self._world.admin.delete(topic)
        for name in self._subjects:
            if self._world.registry is not None:
                self._world.registry.delete_subject(name)

    def _topic(self, source: Source, options: TopicOptions) -> None:
        admin = self._world.admin
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
        admin.create(spec)
        self._topics.append(source.topic)

    def _schemas(self, source: Source) -> None:
        """Registers the schemas that records of this source bear."""
        for side in SIDES:
            serde = source.key if side == "key" else source.value
            columns = source.schema.key if side == "key" else source.schema.value
            if not columns:
                continue
            format_, layout = plain_layout(serde, columns, side, source.topic)
            if not isinstance(format_, RegistryFormat) or layout.option("schemaId"):
                continue
            registry = self._world.registry
            if registry is None:
                raise StatementError(
                    f"Cannot create source '{source.name}': format {format_.name} needs a schema "
                    "registry. Set 'ksql.schema.registry.url'."
                )
            name = subject(source.topic, side)
            known = name in registry.subjects()
            schema = format_.to_registry(layout)
            registry.register(name, schema.text, schema.type)
            if not known:
                self._subjects.append(name)


def _configs(source: Source, options: TopicOptions) -> dict[str, str]:
    configs = {}
    if options.retention_ms is not None:
        configs["retention.ms"] = str(options.retention_ms)
    if options.cleanup_policy is not None:
        configs["cleanup.policy"] = options.cleanup_policy
    elif source.kind is SourceKind.TABLE and source.is_sink:
        configs["cleanup.policy"] = "compact" if source.window is None else "compact,delete"
    return configs
