"""An engine without Spark or Kafka: a few canned answers, and rows that a test pushes by hand."""

from __future__ import annotations

import queue
import threading
from decimal import Decimal
from itertools import count

from headrace.model import entities as e
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.requests import LIMIT_REACHED, QUERY_COMPLETED, QueryKind, ResultRow
from headrace.model.schema import Column, Namespace, Schema
from headrace.model.types import BIGINT, DOUBLE, STRING
from headrace.model.types import Decimal as DecimalType

SCHEMA = Schema.of(
    [
        Column("ID", STRING, Namespace.KEY),
        Column("N", BIGINT),
        Column("PRICE", DecimalType(6, 2)),
        Column("X", DOUBLE),
    ]
)
END = object()


class FakeQuery:
    def __init__(self, query_id, kind, rows=(), limit=None, endless=False, schema=SCHEMA):
        self.id = query_id
        self.kind = kind
        self.schema = schema
        self.final_message = None
        self.closed = threading.Event()
        self.limit = limit
        self.queue = queue.Queue()
        for row in rows:
            self.queue.put(row)
        if not endless:
            self.queue.put(END)

    def push(self, *values, tombstone=False):
        self.queue.put(ResultRow(values, tombstone))

    def fail(self, error):
        self.queue.put(error)

    def next_batch(self, timeout):
        if self.limit == 0:
            self.final_message = LIMIT_REACHED
            return None
        try:
            item = self.queue.get(timeout=timeout)
        except queue.Empty:
            return None if self.closed.is_set() else []
        if item is END:
            if self.kind is QueryKind.PUSH and not self.closed.is_set():
                self.final_message = QUERY_COMPLETED
            return None
        if isinstance(item, Exception):
            raise item
        if self.limit is not None:
            self.limit -= 1
        return [item]

    def close(self):
        self.closed.set()
        self.queue.put(END)


class FakePrint:
    def __init__(self, lines):
        self.batches = [lines, None]
        self.closed = threading.Event()

    def next_batch(self, timeout):
        return self.batches.pop(0)

    def close(self):
        self.closed.set()


class FakeInserter:
    def __init__(self, target, properties):
        self.target = target
        self.properties = properties
        self.rows = []
        self.flushed = 0
        self.closed = threading.Event()

    def insert(self, row):
        if "BAD" in row:
            raise HeadraceError("Can't coerce a field of type STRING into type BIGINT")
        self.rows.append(row)

    def flush(self):
        self.flushed = len(self.rows)

    def close(self):
        self.closed.set()


ROWS = [
    ResultRow(("a", 1, Decimal("1.50"), 0.5)),
    ResultRow(("b", 2, None, float("nan"))),
]


class FakeEngine:
    """Answers by what the text begins with; keeps what it was asked."""

    def __init__(self):
        self.requests = []
        self.queries = {}
        self._numbers = count()  # several threads ask at once
        self.inserters = []
        self.printed = []
        self.healthy = True
        self.ready = True
        self.topics = set()
        self.looks = 0
        self.sources = {"S": "STREAM", "T": "TABLE"}

    def steps(self, request):
        """`ASSERT … x` waits until a test has put x among the topics."""
        self.requests.append(request)
        words = request.text.strip(" ;").split()
        if words and words[0].upper() == "ASSERT":
            while words[2] not in self.topics:
                self.looks += 1
                yield 0.02
        return self._execute(request)

    def _execute(self, request):
        text = request.text
        upper = " ".join(text.upper().split())
        if "NO_SUCH" in upper:
            error = StatementError("NO_SUCH does not exist.", text)
            error.entities = (e.WarningEntity("X;", "fine"),)
            raise error
        if "BUG" in upper:
            raise RuntimeError("secret detail")
        if "SYNTAX" in upper:
            raise StatementError("line 1:1: Syntax Error")
        return [self._answer(part.strip() + ";") for part in text.split(";") if part.strip()]

    def _answer(self, text):
        upper = " ".join(text.upper().split())
        if upper.startswith(("SHOW STREAMS", "LIST STREAMS")):
            return e.StreamList(
                text,
                tuple(
                    e.SourceInfo("STREAM", name, name.lower(), "KAFKA", "JSON", False)
                    for name, kind in self.sources.items()
                    if kind == "STREAM"
                ),
            )
        if upper.startswith(("SHOW TABLES", "LIST TABLES")):
            return e.TableList(text, (e.SourceInfo("TABLE", "T", "t", "KAFKA", "JSON", True),))
        if upper.startswith(("SHOW QUERIES", "LIST QUERIES")):
            info = e.QueryInfo("CREATE …;", ("T",), ("t",), "CTAS_T_1", {e.QueryState.RUNNING: 1})
            return e.QueryList(text, (info,))
        if upper.startswith(("SHOW FUNCTIONS", "LIST FUNCTIONS")):
            return e.FunctionList(text, (e.FunctionName("ABS", "SCALAR", "MATHEMATICAL"),))
        if upper.startswith(("SHOW VARIABLES", "LIST VARIABLES")):
            variables = self.requests[-1].variables
            return e.VariableList(text, tuple(e.Variable(k, v) for k, v in variables.items()))
        if upper.startswith(("SHOW PROPERTIES", "LIST PROPERTIES")):
            return e.PropertyList(text, (e.Property("ksql.service.id", "KSQL", "default_"),))
        if upper.startswith("DESCRIBE"):
            return e.DescribedSource(text, self._description())
        status = e.CommandStatus(e.CommandState.SUCCESS, "Stream created")
        return e.CurrentStatus(text, e.CommandId("STREAM", "S", "CREATE"), status, 7)

    def _description(self):
        return e.SourceDescription(
            name="S",
            window_type=None,
            read_queries=(),
            write_queries=(),
            fields=e.FieldInfo.all_of(SCHEMA),
            type="STREAM",
            timestamp="",
            statistics="",
            error_stats="",
            extended=False,
            key_format="KAFKA",
            value_format="JSON",
            topic="s",
            partitions=1,
            replication=1,
            statement="CREATE STREAM S …;",
        )

    def query(self, request):
        self.requests.append(request)
        text = request.text.upper()
        if "NO_SUCH" in text:
            raise StatementError("NO_SUCH does not exist.", request.text)
        if "BUG" in text:
            raise RuntimeError("secret detail")
        query_id = f"q{next(self._numbers)}"
        if "EMIT" not in text:
            query = FakeQuery(query_id, QueryKind.PULL, ROWS)
        elif "LIMIT" in text:
            query = FakeQuery(query_id, QueryKind.PUSH, ROWS, limit=2, endless=True)
        else:
            query = FakeQuery(query_id, QueryKind.PUSH, ROWS, endless=True)
        self.queries[query_id] = query
        return query

    def answer_now(self, request):
        return self.query(request) if "AT_HAND" in request.text else None

    def print_topic(self, request):
        self.requests.append(request)
        printed = FakePrint(["Key format: KAFKA_STRING", "rowtime: …, key: a, value: 1"])
        self.printed.append(printed)
        return printed

    def insert(self, target, properties):
        if target.upper() == "NO_SUCH":
            raise StatementError("Cannot insert values into an unknown stream/table: `NO_SUCH`")
        inserter = FakeInserter(target, properties)
        self.inserters.append(inserter)
        return inserter

    def close_query(self, query_id):
        query = self.queries.get(query_id)
        if query is None:
            return False
        query.close()
        return True

    def info(self):
        return e.ServerInfo("0.1.0", "cluster", "default_")

    def health(self):
        kafka = e.HealthPart(None if self.healthy else "nobody answers")
        return e.Health({"metastore": e.HealthPart(), "kafka": kafka})

    def is_ready(self):
        return self.ready

    def cluster_status(self):
        return e.ClusterStatus({"127.0.0.1:8088": e.HostStatus(True, 1)})

    def hear(self, host):
        self.requests.append(("heartbeat", host))

    def hear_lags(self, host, lags, at_ms):
        self.requests.append(("lag", host, lags, at_ms))

    def command_status(self, command_id):
        return self.command_statuses().get(command_id)

    def command_statuses(self):
        return {"stream/S/create": e.CommandStatus(e.CommandState.SUCCESS, "Stream created")}

    def check_property(self, name):
        if name == "ksql.service.id":
            raise HeadraceError(f"Property '{name}' cannot be overridden.")

    def terminate_cluster(self, delete_topics):
        self.requests.append(tuple(delete_topics))
        return []
