"""Every entity of the model has a form for people."""

from headrace.cli.render import RENDERERS, render, type_text
from headrace.model import entities as e
from headrace.model.schema import HEADERS_TYPE, Column, Namespace, Schema
from headrace.model.types import BIGINT, STRING, Array, Decimal, Field, Map, Struct

SCHEMA = Schema.of(
    [
        Column("ID", BIGINT, Namespace.KEY),
        Column("V", Map(STRING, Array(Decimal(4, 2)))),
        Column("S", Struct((Field("X", STRING),))),
        Column("H", HEADERS_TYPE, Namespace.HEADERS),
        Column("T", HEADERS_TYPE.element, Namespace.HEADERS, "trace"),
    ]
)
FIELDS = e.FieldInfo.all_of(SCHEMA)
QUERY = e.QueryInfo("CREATE\nX;", ("T",), ("t",), "Q1", {e.QueryState.RUNNING: 1})
OFFSETS = e.GroupOffsets("g", (e.TopicOffsets("s", (e.PartitionOffsets(0, 0, 9, 4),)),))


def source(extended):
    return e.SourceDescription(
        *("T", "TUMBLING", (QUERY,), (QUERY,), FIELDS, "TABLE", "", "st", "er", extended),
        *("KAFKA", "JSON", "t", 4, 1, "CREATE TABLE T …;", (OFFSETS,), ("U",)),
        cluster_statistics=(e.HostStatistic("messages", "h:1", 3.0, 5),),
    )


DESCRIBED = e.QueryDescription(
    *("Q1", "SELECT 1;", None, FIELDS, ("S",), ("T",), "topology", "plan", {"a": "b"}),
    *({"h:1": e.QueryState.ERROR}, e.QueryType.PERSISTENT, (e.QueryError(1, "broke"),)),
)
WORKER = e.WorkerState("RUNNING", "w", id=0)

SHOWN = [
    (
        e.CurrentStatus(
            "x;",
            e.CommandId("STREAM", "S", "CREATE"),
            e.CommandStatus(e.CommandState.SUCCESS, "Created\nmore"),
        ),
        ["Created"],
    ),
    (e.WarningEntity("x;", "exists already"), ["exists already"]),
    (e.StreamList("x;", (e.SourceInfo("STREAM", "S", "s", "KAFKA", "JSON", False),)), ["JSON"]),
    (e.TableList("x;", (e.SourceInfo("TABLE", "T", "t", "KAFKA", "JSON", True),)), ["true"]),
    (e.QueryList("x;", (QUERY,)), ["RUNNING:1", "CREATE X;"]),
    (e.TopicList("x;", (e.TopicInfo("s", (1, 1)), e.TopicInfo("u", (1, 2)))), ["2", "1, 2"]),
    (e.TopicListExtended("x;", (e.TopicInfoExtended("s", (1,), 5, 6),)), ["5", "6"]),
    (e.FunctionList("x;", (e.FunctionName("ABS", "SCALAR", "MATH"),)), ["MATH"]),
    (
        e.DescribedFunction(
            *("x;", "ABS", "Absolute.", "H", "1", "internal"),
            (e.FunctionVariation((e.Argument("val", "INT", "a number", True),), "INT", "d"),),
            "SCALAR",
        ),
        ["ABS(val INT[])", "a number", "Absolute."],
    ),
    (
        e.PropertyList(
            "x;",
            (
                e.Property("b", "KSQL", None),
                e.Property("a", "KSQL", "1"),
                e.Property("c", "KSQL", "2"),
            ),
            ("a",),
            ("b",),
        ),
        ["SESSION", "SERVER", "NULL"],
    ),
    (e.VariableList("x;", (e.Variable("n", "v"),)), ["Variable Name"]),
    (e.TypeList("x;", {"ADDRESS": e.SchemaInfo.of(SCHEMA.columns[2].type)}), ["STRUCT<X VARCHAR"]),
    (
        e.DescribedSource("x;", source(False), warnings=("old",)),
        ["(primary key) (Window type: TUMBLING)", "(headers)", "(header('trace'))", "WARNING: old"],
    ),
    (
        e.SourceDescriptionList("x;", (source(True),)),
        ["partitions: 4", "Q1 (RUNNING) : CREATE X;", "Max lag              : 5", "messages"],
    ),
    (e.ExplainedQuery("x;", DESCRIBED), ["plan", "topology", "broke", "Overridden Properties"]),
    (e.QueryDescriptionList("x;", (DESCRIBED,)), ["Q1"]),
    (e.TerminatedQuery("x;", "Q1", True), ['Terminated query "Q1"']),
    (
        e.CreatedConnector("x;", e.Connector("c", {}, (e.ConnectorTask("c", 0),), "source")),
        ["Created connector c"],
    ),
    (e.DroppedConnector("x;", "c"), ['Dropped connector "c"']),
    (e.ConnectorList("x;", (e.ConnectorSummary("c", "source", "C", "RUNNING"),)), ["RUNNING"]),
    (e.ConnectorPluginList("x;", (e.ConnectorPlugin("C", "source", "1"),)), ["C"]),
    (
        e.ConnectorDescription(
            "x;", "C", e.ConnectorStatus("c", WORKER, (WORKER,), "sink"), (source(False),), ("t",)
        ),
        ["Task ID", "KSQL Source Name", "Related Topics"],
    ),
    (e.AssertedTopic("x;", "t", False), ["Topic t does not exist."]),
    (e.AssertedSchema("x;", "s", 3, True), ["Schema with subject s id 3 exists."]),
]


def test_every_entity_is_shown():
    for entity, expected in SHOWN:
        text = "\n".join(render(entity.to_json(), 120))
        for part in expected:
            assert part in text, (part, text)
        narrow = [line for line in render(entity.to_json(), 40) if "|" in line]
        assert all(len(line) <= 40 for line in narrow)


def test_no_entity_is_forgotten():
    assert {entity.type_name for entity, _ in SHOWN} == set(RENDERERS)
    assert {cls.type_name for cls in e.Entity.__subclasses__()} == set(RENDERERS)


def test_what_is_unknown_is_shown_as_json():
    assert list(render({"@type": "new", "x": 1}, 80)) == ['{\n  "@type": "new",\n  "x": 1\n}']


def test_types():
    assert type_text(FIELDS[1].schema.to_json()) == "MAP<STRING, ARRAY<DECIMAL(4, 2)>>"
