"""Answers to statements: ksqlDB's JSON entities as frozen dataclasses.

A field `sink_kafka_topics` is the JSON property `sinkKafkaTopics`; every class lists its fields
in the order ksqlDB writes them. `Entity` adds `@type` in front and `warnings` at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from typing import Any, ClassVar

from headrace.model.schema import Column, Namespace, Schema
from headrace.model.types import Array, Decimal, Map, SqlType, Struct, base_name

Json = Any  # what json.dumps takes


class Wire:
    """Anything that has a JSON form. `omit` names the fields left out when they are None."""

    omit: ClassVar[frozenset[str]] = frozenset()

    def to_json(self) -> dict[str, Json]:
        return {
            _camel(f.name): _as_json(value)
            for f in fields(self)  # type: ignore[arg-type]  # every Wire class is a dataclass
            if (value := getattr(self, f.name)) is not None or f.name not in self.omit
        }


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


def _as_json(value: object) -> Json:
    match value:
        case Wire():
            return value.to_json()
        case Enum():
            return value.value
        case Mapping():
            return {str(k): _as_json(v) for k, v in value.items()}
        case tuple() | list() | set() | frozenset():
            return [_as_json(v) for v in value]
        case _:
            return value


@dataclass(frozen=True)
class Entity(Wire):
    """The answer to one statement."""

    type_name: ClassVar[str]

    statement_text: str
    warnings: tuple[str, ...] = field(default=(), kw_only=True)

    def to_json(self) -> dict[str, Json]:
        body = super().to_json()
        del body["warnings"]
        warnings = [{"message": text} for text in self.warnings]
        return {"@type": self.type_name, **body, "warnings": warnings}


# ------------------------------------------------------------------------------- schemas


@dataclass(frozen=True)
class SchemaInfo(Wire):
    """A type as DESCRIBE shows it; a map's key type is not shown."""

    omit = frozenset({"parameters"})

    type: str
    fields: tuple[FieldInfo, ...] | None = None
    member_schema: SchemaInfo | None = None
    parameters: Mapping[str, int] | None = None

    @staticmethod
    def of(type_: SqlType) -> SchemaInfo:
        name = base_name(type_)
        match type_:
            case Array(element):
                return SchemaInfo(name, member_schema=SchemaInfo.of(element))
            case Map(_, value):
                return SchemaInfo(name, member_schema=SchemaInfo.of(value))
            case Struct(members):
                return SchemaInfo(
                    name, tuple(FieldInfo(m.name, SchemaInfo.of(m.type)) for m in members)
                )
            case Decimal(precision, scale):
                return SchemaInfo(name, parameters={"precision": precision, "scale": scale})
        return SchemaInfo(name)


_FIELD_TYPES = {Namespace.KEY: "KEY", Namespace.HEADERS: "HEADER", Namespace.VALUE: None}


@dataclass(frozen=True)
class FieldInfo(Wire):
    """A column, or a field of a struct. `type` is KEY, HEADER or absent."""

    omit = frozenset({"type", "header_key"})

    name: str
    schema: SchemaInfo
    type: str | None = None
    header_key: str | None = None

    @staticmethod
    def of(column: Column) -> FieldInfo:
        return FieldInfo(
            column.name,
            SchemaInfo.of(column.type),
            _FIELD_TYPES[column.namespace],
            column.header_key,
        )

    @staticmethod
    def all_of(schema: Schema) -> tuple[FieldInfo, ...]:
        return tuple(map(FieldInfo.of, schema))


# ------------------------------------------------------------------- commands and their fate


@dataclass(frozen=True)
class CommandId:
    """Names a command for `/status`: `stream/PAGEVIEWS/create`."""

    type: str
    entity: str
    action: str

    def __str__(self) -> str:
        return f"{self.type.lower()}/{self.entity}/{self.action.lower()}"


class CommandState(StrEnum):
    QUEUED = "QUEUED"
    PARSING = "PARSING"
    EXECUTING = "EXECUTING"
    RUNNING = "RUNNING"
    TERMINATED = "TERMINATED"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"


@dataclass(frozen=True)
class CommandStatus(Wire):
    status: CommandState
    message: str
    query_id: str | None = None


@dataclass(frozen=True)
class CurrentStatus(Entity):
    """The answer to a statement that was written to the command log."""

    type_name = "currentStatus"

    command_id: CommandId
    command_status: CommandStatus
    command_sequence_number: int = -1

    def to_json(self) -> dict[str, Json]:
        return {**super().to_json(), "commandId": str(self.command_id)}


@dataclass(frozen=True)
class WarningEntity(Entity):
    """A statement that did nothing, and why that is fine (IF NOT EXISTS, IF EXISTS)."""

    type_name = "warning_entity"

    message: str


# ------------------------------------------------------------------------------- queries


class QueryState(StrEnum):
    RUNNING = "RUNNING"
    ERROR = "ERROR"
    UNRESPONSIVE = "UNRESPONSIVE"
    PAUSED = "PAUSED"
    DEGRADED = "DEGRADED"  # known, and tried again and again: what it needs is not there now


class QueryType(StrEnum):
    PERSISTENT = "PERSISTENT"
    PUSH = "PUSH"
    CREATE_SOURCE = "CREATE_SOURCE"


def _worst(states: Collection[QueryState]) -> QueryState:
    """The one word for a query that several servers may see differently."""
    bad = (state for state in (QueryState.ERROR, QueryState.DEGRADED) if state in states)
    return next(bad, QueryState.RUNNING)


@dataclass(frozen=True)
class QueryInfo(Wire):
    """One line of SHOW QUERIES. `status_count`: how many servers see the query in which state."""

    query_string: str
    sinks: tuple[str, ...]
    sink_kafka_topics: tuple[str, ...]
    id: str
    status_count: Mapping[QueryState, int]
    query_type: QueryType = QueryType.PERSISTENT

    def to_json(self) -> dict[str, Json]:
        states = {state for state, count in self.status_count.items() if count}
        return {**super().to_json(), "state": _worst(states).value}


@dataclass(frozen=True)
class QueryList(Entity):
    type_name = "queries"

    queries: tuple[QueryInfo, ...]


@dataclass(frozen=True)
class QueryError(Wire):
    """One failure of a query: `type` is USER, SYSTEM or UNKNOWN."""

    timestamp: int
    error_message: str
    type: str = "UNKNOWN"


@dataclass(frozen=True)
class TopicPartition(Wire):
    topic: str
    partition: int


@dataclass(frozen=True)
class TopicOffset(Wire):
    topic_partition_entity: TopicPartition
    end_offset: int
    committed_offset: int


@dataclass(frozen=True)
class TaskMetadata(Wire):
    task_id: str
    topic_offsets: tuple[TopicOffset, ...] = ()
    time_current_idling_started: int | None = None


@dataclass(frozen=True)
class QueryDescription(Wire):
    """What EXPLAIN and DESCRIBE show of a query. `hosts`: `host:port` → state."""

    id: str
    statement_text: str
    window_type: str | None
    fields: tuple[FieldInfo, ...]
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    topology: str
    execution_plan: str
    overridden_properties: Mapping[str, Json]
    ksql_host_query_status: Mapping[str, QueryState]
    query_type: QueryType
    query_errors: tuple[QueryError, ...] = ()
    tasks_metadata: tuple[TaskMetadata, ...] = ()
    consumer_group_id: str = ""

    def to_json(self) -> dict[str, Json]:
        states = set(self.ksql_host_query_status.values())
        return {**super().to_json(), "state": _worst(states).value if states else None}


@dataclass(frozen=True)
class ExplainedQuery(Entity):
    type_name = "queryDescription"

    query_description: QueryDescription


@dataclass(frozen=True)
class QueryDescriptionList(Entity):
    type_name = "query_descriptions"

    query_descriptions: tuple[QueryDescription, ...]


@dataclass(frozen=True)
class TerminatedQuery(Entity):
    """A transient query that TERMINATE ended (persistent ones answer with CurrentStatus)."""

    type_name = "terminate_query"

    query_id: str
    was_terminated: bool


# ------------------------------------------------------------------------------- sources


@dataclass(frozen=True)
class SourceInfo(Wire):
    """One line of SHOW STREAMS or SHOW TABLES. `type` is STREAM or TABLE."""

    type: str
    name: str
    topic: str
    key_format: str
    value_format: str
    is_windowed: bool


@dataclass(frozen=True)
class StreamList(Entity):
    type_name = "streams"

    streams: tuple[SourceInfo, ...]


@dataclass(frozen=True)
class TableList(Entity):
    type_name = "tables"

    tables: tuple[SourceInfo, ...]


@dataclass(frozen=True)
class PartitionOffsets(Wire):
    partition: int
    log_start_offset: int
    log_end_offset: int
    consumer_offset: int


@dataclass(frozen=True)
class TopicOffsets(Wire):
    kafka_topic: str
    offsets: tuple[PartitionOffsets, ...]


@dataclass(frozen=True)
class GroupOffsets(Wire):
    """How far a query has read (DESCRIBE … EXTENDED)."""

    group_id: str
    topic_summaries: tuple[TopicOffsets, ...]


@dataclass(frozen=True)
class HostStatistic(Wire):
    name: str
    host: str
    value: float
    timestamp: int


@dataclass(frozen=True)
class SourceDescription(Wire):
    """What DESCRIBE shows of a stream or a table; `type` is STREAM or TABLE."""

    name: str
    window_type: str | None
    read_queries: tuple[QueryInfo, ...]
    write_queries: tuple[QueryInfo, ...]
    fields: tuple[FieldInfo, ...]
    type: str
    timestamp: str
    statistics: str
    error_stats: str
    extended: bool
    key_format: str
    value_format: str
    topic: str
    partitions: int
    replication: int
    statement: str
    query_offset_summaries: tuple[GroupOffsets, ...] = ()
    source_constraints: tuple[str, ...] = ()
    cluster_statistics: tuple[HostStatistic, ...] = ()
    cluster_error_stats: tuple[HostStatistic, ...] = ()
    topic_records: int | None = None  # ours: what the topic holds; ksqlDB's clients ignore it


@dataclass(frozen=True)
class DescribedSource(Entity):
    type_name = "sourceDescription"

    source_description: SourceDescription


@dataclass(frozen=True)
class SourceDescriptionList(Entity):
    type_name = "source_descriptions"

    source_descriptions: tuple[SourceDescription, ...]


# -------------------------------------------------------------------------------- topics


@dataclass(frozen=True)
class TopicInfo(Wire):
    """A topic; `replica_info` has the number of replicas of each partition."""

    name: str
    replica_info: tuple[int, ...]


@dataclass(frozen=True)
class TopicList(Entity):
    type_name = "kafka_topics"

    topics: tuple[TopicInfo, ...]


@dataclass(frozen=True)
class TopicInfoExtended(Wire):
    name: str
    replica_info: tuple[int, ...]
    consumer_count: int
    consumer_group_count: int


@dataclass(frozen=True)
class TopicListExtended(Entity):
    type_name = "kafka_topics_extended"

    topics: tuple[TopicInfoExtended, ...]


@dataclass(frozen=True)
class AssertedTopic(Entity):
    type_name = "assert_topic"

    topic_name: str
    exists: bool


@dataclass(frozen=True)
class AssertedSchema(Entity):
    type_name = "assert_schema"

    subject: str | None
    id: int | None
    exists: bool


# --------------------------------------------------------- settings, variables, types, functions


@dataclass(frozen=True)
class Property(Wire):
    """A setting. `scope`: KSQL, KAFKA STREAMS, …; `level`: SERVER or QUERY."""

    name: str
    scope: str
    value: str | None
    editable: bool = False
    level: str = "SERVER"


@dataclass(frozen=True)
class PropertyList(Entity):
    type_name = "properties"

    properties: tuple[Property, ...]
    overwritten_properties: tuple[str, ...] = ()
    default_properties: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variable(Wire):
    name: str
    value: str


@dataclass(frozen=True)
class VariableList(Entity):
    type_name = "variables"

    variables: tuple[Variable, ...]


@dataclass(frozen=True)
class TypeList(Entity):
    type_name = "type_list"

    types: Mapping[str, SchemaInfo]


@dataclass(frozen=True)
class FunctionName(Wire):
    """One line of SHOW FUNCTIONS; `type` is SCALAR, AGGREGATE or TABLE."""

    name: str
    type: str
    category: str


@dataclass(frozen=True)
class FunctionList(Entity):
    type_name = "function_names"

    functions: tuple[FunctionName, ...]


@dataclass(frozen=True)
class Argument(Wire):
    name: str
    type: str
    description: str = ""
    is_variadic: bool = False


@dataclass(frozen=True)
class FunctionVariation(Wire):
    arguments: tuple[Argument, ...]
    return_type: str
    description: str = ""

    def to_json(self) -> dict[str, Json]:
        return {**super().to_json(), "argumentTypes": [a.type for a in self.arguments]}


@dataclass(frozen=True)
class DescribedFunction(Entity):
    type_name = "describe_function"

    name: str
    description: str
    author: str
    version: str
    path: str
    functions: tuple[FunctionVariation, ...]
    type: str


# ---------------------------------------------------------------------------- connectors


@dataclass(frozen=True)
class ConnectorTask(Wire):
    connector: str
    task: int


@dataclass(frozen=True)
class Connector(Wire):
    """A connector; `type` is source, sink or unknown."""

    name: str
    config: Mapping[str, str]
    tasks: tuple[ConnectorTask, ...]
    type: str


@dataclass(frozen=True)
class CreatedConnector(Entity):
    type_name = "connector_info"

    info: Connector


@dataclass(frozen=True)
class DroppedConnector(Entity):
    type_name = "drop_connector"

    connector_name: str


@dataclass(frozen=True)
class ConnectorSummary(Wire):
    omit = frozenset({"name", "type", "class_name", "state"})

    name: str
    type: str | None = None
    class_name: str | None = None
    state: str | None = None


@dataclass(frozen=True)
class ConnectorList(Entity):
    type_name = "connector_list"

    connectors: tuple[ConnectorSummary, ...]


@dataclass(frozen=True)
class ConnectorPlugin(Wire):
    omit = frozenset({"type", "version"})

    class_name: str
    type: str | None = None
    version: str | None = None


@dataclass(frozen=True)
class ConnectorPluginList(Entity):
    type_name = "connector_plugins_list"

    connectors_plugins: tuple[ConnectorPlugin, ...]


@dataclass(frozen=True)
class WorkerState(Wire):
    """The state of a connector (`id` None) or of one of its tasks."""

    omit = frozenset({"id", "trace"})

    state: str
    worker_id: str
    trace: str | None = None
    id: int | None = None

    def to_json(self) -> dict[str, Json]:
        # Connect's own names here are not camel case.
        return {{"workerId": "worker_id"}.get(k, k): v for k, v in super().to_json().items()}


@dataclass(frozen=True)
class ConnectorStatus(Wire):
    name: str
    connector: WorkerState
    tasks: tuple[WorkerState, ...]
    type: str


@dataclass(frozen=True)
class ConnectorDescription(Entity):
    type_name = "connector_description"

    connector_class: str
    status: ConnectorStatus
    sources: tuple[SourceDescription, ...]
    topics: tuple[str, ...]


# -------------------------------------------------------------------------------- errors


@dataclass(frozen=True)
class ErrorEntity(Wire):
    """A failure that belongs to no single statement. `error_code` is status × 100 + detail."""

    type_name: ClassVar[str] = "generic_error"

    error_code: int
    message: str

    @property
    def status(self) -> int:
        return self.error_code // 100

    def to_json(self) -> dict[str, Json]:
        return {"@type": self.type_name, "error_code": self.error_code, "message": self.message}


@dataclass(frozen=True)
class StatementErrorEntity(ErrorEntity):
    """A failure of one statement; `entities` are the answers of those before it."""

    type_name = "statement_error"

    statement_text: str
    entities: tuple[Entity, ...] = ()

    def to_json(self) -> dict[str, Json]:
        return {
            **super().to_json(),
            "statementText": self.statement_text,
            "entities": _as_json(self.entities),
        }


# --------------------------------------------------------------------- what the server is


@dataclass(frozen=True)
class ServerInfo(Wire):
    """The answer of `/info`; `addresses` of this server's parts (`kafka`, `registry`, …)."""

    version: str
    kafka_cluster_id: str
    ksql_service_id: str
    server_status: str = "RUNNING"
    addresses: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        return {"KsqlServerInfo": super().to_json()}


@dataclass(frozen=True)
class HealthPart:
    """A part of the server, and why it is unwell if it is. One that does not count may be so
    without the server being unhealthy."""

    reason: str | None = None
    counts: bool = True

    @property
    def is_healthy(self) -> bool:
        return self.reason is None

    def to_json(self) -> dict[str, Json]:
        told: dict[str, Json] = {"isHealthy": self.is_healthy}
        return told if self.reason is None else {**told, "reason": self.reason}


@dataclass(frozen=True)
class Health(Wire):
    """The answer of `/healthcheck`: parts by name (`metastore`, `kafka`, …), and the whole."""

    parts: Mapping[str, HealthPart]
    server_state: str = "READY"

    @property
    def is_healthy(self) -> bool:
        return all(part.is_healthy for part in self.parts.values() if part.counts)

    def to_json(self) -> dict[str, Json]:
        return {
            "isHealthy": self.is_healthy,
            "details": {name: part.to_json() for name, part in self.parts.items()},
            "serverState": self.server_state,
        }


@dataclass(frozen=True)
class HostStatus(Wire):
    """One server in `/clusterStatus`. The lags are by state store, then by partition."""

    host_alive: bool
    last_status_update_ms: int
    active_standby_per_query: Mapping[str, Json] = field(default_factory=dict)
    state_store_lags: Mapping[str, Json] = field(default_factory=dict)
    lags_update_ms: int | None = None  # if not the time of the status

    def to_json(self) -> dict[str, Json]:
        body = super().to_json()
        lags, told = body.pop("stateStoreLags"), body.pop("lagsUpdateMs")
        at = self.last_status_update_ms if told is None else told
        return {**body, "hostStoreLags": {"stateStoreLags": lags, "updateTimeMs": at}}


@dataclass(frozen=True)
class ClusterStatus(Wire):
    cluster_status: Mapping[str, HostStatus]
