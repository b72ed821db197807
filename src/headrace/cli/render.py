"""Entities as text for people: one function for each `@type`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headrace.cli.text_tables import table
from headrace.model.moments import iso_moment

Json = Mapping[str, Any]
Lines = Iterator[str]
Renderer = Callable[[Json, int | None], Lines]

_FOOT_QUERIES = "For detailed information on a Query run: EXPLAIN <Query ID>;"
_FOOT_FUNCTIONS = (
    "For detailed information about a function, run: DESCRIBE FUNCTION <Function Name>;"
)
_HINT_EXTENDED = "For runtime statistics and query details run: DESCRIBE <Stream,Table> EXTENDED;"


def render(entity: Json, width: int | None) -> Lines:
    yield from RENDERERS.get(str(entity.get("@type")), _as_json)(entity, width)
    for warning in entity.get("warnings") or ():
        yield f"WARNING: {warning['message']}"


def _as_json(entity: Json, width: int | None) -> Lines:
    yield json.dumps(entity, indent=2, ensure_ascii=False)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _named(label: str, value: object) -> str:
    return f"{label:<20} : {value}"


def _section(title: str) -> Lines:
    yield ""
    yield title
    yield "-" * len(title)


def _message(text: Callable[[Json], str]) -> Renderer:
    def show(entity: Json, width: int | None) -> Lines:
        yield from table(["Message"], [[text(entity)]], width)

    return show


def _listing(
    headers: Sequence[str],
    member: str,
    cells: Callable[[Json], Sequence[object]],
    footer: str | None = None,
) -> Renderer:
    def show(entity: Json, width: int | None) -> Lines:
        rows = [[_text(cell) for cell in cells(item)] for item in entity[member]]
        yield from table(headers, rows, width)
        if footer:
            yield footer

    return show


# --------------------------------------------------------------------------------- cells


def _source(item: Json) -> Sequence[object]:
    windowed = "true" if item["isWindowed"] else "false"
    return item["name"], item["topic"], item["keyFormat"], item["valueFormat"], windowed


def _query(item: Json) -> Sequence[object]:
    counts = ",".join(f"{state}:{count}" for state, count in item["statusCount"].items())
    return (
        item["id"],
        item["queryType"],
        counts,
        ",".join(item["sinks"]),
        ",".join(item["sinkKafkaTopics"]),
        " ".join(item["queryString"].split("\n")),
    )


def _topic(item: Json) -> Sequence[object]:
    replicas = item["replicaInfo"]
    same = len(set(replicas)) == 1
    counts = str(replicas[0]) if same else ", ".join(map(str, replicas)) or "0"
    return item["name"], len(replicas), counts


def _topic_extended(item: Json) -> Sequence[object]:
    return *_topic(item), item["consumerCount"], item["consumerGroupCount"]


def type_text(schema: Json) -> str:
    """A type as DESCRIBE shows it; a map's key type is not told by the server."""
    name = schema["type"]
    if name == "STRING":
        return "VARCHAR(STRING)"
    if name == "ARRAY":
        return f"ARRAY<{type_text(schema['memberSchema'])}>"
    if name == "MAP":
        return f"MAP<STRING, {type_text(schema['memberSchema'])}>"
    if name == "STRUCT":
        fields = (f"{f['name']} {type_text(f['schema'])}" for f in schema["fields"])
        return f"STRUCT<{', '.join(fields)}>"
    if name == "DECIMAL" and schema.get("parameters"):
        return f"DECIMAL({schema['parameters']['precision']}, {schema['parameters']['scale']})"
    return str(name)


def _field(field: Json, is_table: bool, window: str | None) -> Sequence[str]:
    mark = ""
    if field.get("type") == "KEY":
        kind = "(primary key)" if is_table else "(key)"
        mark = f"{kind} (Window type: {window})" if window else kind
    elif field.get("type") == "HEADER":
        key = field.get("headerKey")
        mark = f"(header('{key}'))" if key is not None else "(headers)"
    return field["name"], f"{type_text(field['schema']):<16} {mark}".rstrip()


# --------------------------------------------------------------------------- descriptions


def _described_source(entity: Json, width: int | None) -> Lines:
    yield from _source_lines(entity["sourceDescription"], width)


def _source_list(entity: Json, width: int | None) -> Lines:
    for source in entity["sourceDescriptions"]:
        yield from _source_lines(source, width)
        yield ""


def _source_lines(source: Json, width: int | None) -> Lines:
    yield _named("Name", source["name"])
    if source["extended"]:
        yield _named("Type", source["type"])
        yield _named("Timestamp field", source["timestamp"] or "Not set - using <ROWTIME>")
        yield _named("Key format", source["keyFormat"])
        yield _named("Value format", source["valueFormat"])
        sizes = f"(partitions: {source['partitions']}, replication: {source['replication']})"
        yield _named("Kafka topic", f"{source['topic']} {sizes}")
        yield _named("Statement", source["statement"])
        yield ""
    is_table = source["type"] == "TABLE"
    fields = [_field(f, is_table, source["windowType"]) for f in source["fields"]]
    yield from table(["Field", "Type"], fields, width)
    if not source["extended"]:
        yield _HINT_EXTENDED
        return
    if source["sourceConstraints"]:
        yield from _section("Sources that have a DROP constraint on this source")
        yield from source["sourceConstraints"]
    for member, verb in (("readQueries", "read"), ("writeQueries", "write")):
        if source[member]:
            yield from _section(f"Queries that {verb} from this {source['type']}")
            for query in source[member]:
                text = " ".join(query["queryString"].split("\n"))
                yield f"{query['id']} ({query.get('state', 'N/A')}) : {text}"
            yield ""
            yield "For query topology and execution plan please run: EXPLAIN <QueryId>"
    yield from _statistics(source, width)
    yield from _offsets(source, width)


def _statistics(source: Json, width: int | None) -> Lines:
    every = (*source["clusterStatistics"], *source["clusterErrorStats"])
    if every:
        found = sorted(every, key=lambda item: (item["host"], item["name"]))
        rows = [
            [s["host"], s["name"], _figure(s["value"]), iso_moment(s["timestamp"])] for s in found
        ]
        yield from _section("Runtime statistics by host")
        yield from table(["Host", "Metric", "Value", "Last Message"], rows, width)
    else:
        yield from _section("Local runtime statistics")
        yield source["statistics"]
        yield source["errorStats"]
    yield f"(Statistics of this server's work with the Kafka topic {source['topic']})"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"


def _offsets(source: Json, width: int | None) -> Lines:
    if source["queryOffsetSummaries"]:
        yield ""
        yield "Consumer Groups summary:"
    for group in source["queryOffsetSummaries"]:
        yield ""
        yield _named("Consumer Group", group["groupId"])
        if not group["topicSummaries"]:
            yield "<no offsets committed by this group yet>"
        for topic in group["topicSummaries"]:
            lags = [p["logEndOffset"] - p["consumerOffset"] for p in topic["offsets"]]
            yield ""
            yield _named("Kafka topic", topic["kafkaTopic"])
            yield _named("Max lag", max(lags, default=0))
            yield ""
            members = ("partition", "logStartOffset", "logEndOffset", "consumerOffset")
            rows = [
                [*(str(p[m]) for m in members), str(lag)]
                for p, lag in zip(topic["offsets"], lags, strict=True)
            ]
            headers = ["Partition", "Start Offset", "End Offset", "Offset", "Lag"]
            yield from table(headers, rows, width)


def _explained(entity: Json, width: int | None) -> Lines:
    yield from _query_lines(entity["queryDescription"], width)


def _query_descriptions(entity: Json, width: int | None) -> Lines:
    for query in entity["queryDescriptions"]:
        yield from _query_lines(query, width)
        yield ""


def _query_lines(query: Json, width: int | None) -> Lines:
    yield _named("ID", query["id"])
    yield _named("Query Type", query["queryType"])
    if query["statementText"]:
        yield _named("SQL", query["statementText"])
    if query["ksqlHostQueryStatus"]:
        yield _named("Host Query Status", dict(query["ksqlHostQueryStatus"]))
    yield ""
    fields = [_field(f, False, query["windowType"]) for f in query["fields"]]
    yield from table(["Field", "Type"], fields, width)
    for member, title, hint in (
        ("sources", "Sources that this query reads from:", "source"),
        ("sinks", "Sinks that this query writes to:", "sink"),
    ):
        if query[member]:
            yield from _section(title)
            yield from query[member]
            yield ""
            yield f"For {hint} description please run: DESCRIBE <{hint}> EXTENDED;"
    for member, title in (
        ("executionPlan", "Execution plan"),
        ("topology", "Processing topology"),
    ):
        if query[member]:
            yield from _section(title)
            yield query[member]
    if query["overriddenProperties"]:
        yield from _section("Overridden Properties")
        rows = [[name, _text(value)] for name, value in query["overriddenProperties"].items()]
        yield from table(["Property", "Value"], rows, width)
    for error in query["queryErrors"]:
        yield ""
        yield _named("Error Date", error["timestamp"])
        yield _named("Error Details", error["errorMessage"])
        yield _named("Error Type", error["type"])


def _described_function(entity: Json, width: int | None) -> Lines:
    name = entity["name"]
    for label, value in (
        ("Name", name),
        ("Author", entity["author"]),
        ("Version", entity["version"]),
        ("Overview", entity["description"]),
        ("Type", entity["type"]),
        ("Jar", entity["path"]),
    ):
        if value:
            yield f"{label:<12}: {value}"
    yield "Variations  :"
    for variation in entity["functions"]:
        yield ""
        arguments = ", ".join(map(_argument, variation["arguments"]))
        yield f"\tVariation   : {name}({arguments})"
        yield f"\tReturns     : {variation['returnType']}"
        if variation["description"]:
            yield f"\tDescription : {variation['description']}"
        for argument in variation["arguments"]:
            if argument["description"]:
                yield f"\t{argument['name']:<12}: {argument['description']}"


def _argument(argument: Json) -> str:
    type_ = argument["type"] + ("[]" if argument["isVariadic"] else "")
    return f"{argument['name']} {type_}".strip()


def _properties(entity: Json, width: int | None) -> Lines:
    overwritten, defaults = entity["overwrittenProperties"], entity["defaultProperties"]

    def override(name: str) -> str:
        return "SESSION" if name in overwritten else "" if name in defaults else "SERVER"

    rows = [
        [p["name"], p["scope"], override(p["name"]), "NULL" if p["value"] is None else p["value"]]
        for p in sorted(entity["properties"], key=lambda p: str(p["name"]))
    ]
    yield from table(["Property", "Scope", "Default override", "Effective Value"], rows, width)


def _types(entity: Json, width: int | None) -> Lines:
    rows = [[name, type_text(schema)] for name, schema in sorted(entity["types"].items())]
    yield from table(["Type Name", "Schema"], rows, width)


def _connector(entity: Json, width: int | None) -> Lines:
    status = entity["status"]
    yield _named("Name", status["name"])
    yield _named("Class", entity["connectorClass"])
    yield _named("Type", status["type"])
    yield _named("State", status["connector"]["state"])
    yield _named("WorkerId", status["connector"]["worker_id"])
    if status["connector"].get("trace"):
        yield _named("Trace", status["connector"]["trace"])
    if status["tasks"]:
        yield ""
        rows = [[str(t["id"]), t["state"], t.get("trace", "")] for t in status["tasks"]]
        yield from table(["Task ID", "State", "Error Trace"], rows, width)
    if entity["sources"]:
        yield ""
        rows = [[s["name"], s["topic"], s["type"]] for s in entity["sources"]]
        yield from table(["KSQL Source Name", "Kafka Topic", "Type"], rows, width)
    if entity["topics"]:
        yield ""
        yield from table(["Related Topics"], [[topic] for topic in entity["topics"]], width)


def _existence(what: str, exists: bool) -> str:
    return f"{what} {'exists' if exists else 'does not exist'}."


def _asserted_topic(entity: Json, width: int | None) -> Lines:
    yield _existence(f"Topic {entity['topicName']}", entity["exists"])


def _asserted_schema(entity: Json, width: int | None) -> Lines:
    subject = f" subject {entity['subject']}" if entity["subject"] is not None else ""
    number = f" id {entity['id']}" if entity["id"] is not None else ""
    yield _existence(f"Schema with{subject}{number}", entity["exists"])


_SOURCES = ("Kafka Topic", "Key Format", "Value Format", "Windowed")

RENDERERS: dict[str, Renderer] = {
    "currentStatus": _message(lambda e: str(e["commandStatus"]["message"]).split("\n")[0]),
    "warning_entity": _message(lambda e: str(e["message"])),
    "streams": _listing(("Stream Name", *_SOURCES), "streams", _source),
    "tables": _listing(("Table Name", *_SOURCES), "tables", _source),
    "queries": _listing(
        (
            "Query ID",
            "Query Type",
            "Status",
            "Sink Name",
            "Sink Kafka Topic",
            "Query String",
        ),
        "queries",
        _query,
        _FOOT_QUERIES,
    ),
    "kafka_topics": _listing(("Kafka Topic", "Partitions", "Partition Replicas"), "topics", _topic),
    "kafka_topics_extended": _listing(
        ("Kafka Topic", "Partitions", "Partition Replicas", "Consumers", "ConsumerGroups"),
        "topics",
        _topic_extended,
    ),
    "function_names": _listing(
        ("Function Name", "Category"),
        "functions",
        lambda f: (f["name"], f["category"]),
        _FOOT_FUNCTIONS,
    ),
    "describe_function": _described_function,
    "properties": _properties,
    "variables": _listing(
        ("Variable Name", "Value"), "variables", lambda v: (v["name"], v["value"])
    ),
    "type_list": _types,
    "sourceDescription": _described_source,
    "source_descriptions": _source_list,
    "queryDescription": _explained,
    "query_descriptions": _query_descriptions,
    "terminate_query": _message(lambda e: f'Terminated query "{e["queryId"]}"'),
    "connector_info": _message(lambda e: f"Created connector {e['info']['name']}"),
    "drop_connector": _message(lambda e: f'Dropped connector "{e["connectorName"]}"'),
    "connector_list": _listing(
        ("Connector Name", "Type", "Class", "Status"),
        "connectors",
        lambda c: (c["name"], c.get("type"), c.get("className"), c.get("state")),
    ),
    "connector_plugins_list": _listing(
        ("Class", "Type", "Version"),
        "connectorsPlugins",
        lambda p: (p["className"], p.get("type"), p.get("version")),
    ),
    "connector_description": _connector,
    "assert_topic": _asserted_topic,
    "assert_schema": _asserted_schema,
}
