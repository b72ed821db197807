"""The Spark session, and the broker unless queries run directly, that all cases share."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from pyspark.sql import SparkSession

from headrace.engine.environment import Environment
from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.broker import EmbeddedBroker
from headrace.kafka.client import KafkaConnection
from headrace.kafka.jars import Jars, ensure_jars
from headrace.kafka.records import RecordWriter
from headrace.model.errors import HeadraceError
from headrace.model.settings import Settings
from headrace.spark.runtime.session import start_session
from headrace.testing.cases import Case, RecordCase, ServerCase
from headrace.testing.direct import DirectExecutor
from headrace.testing.flows import PROCESSING_LOG, Flow
from headrace.testing.outputs import check_records
from headrace.testing.planning import check_planning
from headrace.testing.rehearsal import Rehearsal
from headrace.testing.rest_cases import RestCase
from headrace.testing.script_records import ScriptRecords
from headrace.testing.scripts import run_script
from headrace.testing.sql_files import ScriptCase
from headrace.testing.streamed import StreamingExecutor

SPARK = {
    # Rows leave in the order in which they came only if nothing splits them.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.pollingDelay": "5",
    "spark.sql.streaming.minBatchesToRetain": "2",
    # For a handful of rows it takes longer to compile an expression than to interpret it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Topics are made ahead of need, many in one go.
TOPICS_AHEAD = 50


class CaseServices:
    """The shared services, started for the first case that needs them."""

    def __init__(
        self,
        announce: Callable[[str], None],
        settings: Settings,
        *,
        direct: bool = False,
        every_record: bool = False,
    ) -> None:
        self._announce = announce
        self._settings = settings
        self._direct = direct
        self._every_record = every_record
        self._parts = ExitStack()
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:  # also Ctrl-C: what was started is stopped
            self._parts.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._parts.close()

    def _start(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="headrace-test-"))
        self._parts.callback(shutil.rmtree, folder, ignore_errors=True)
        self._announce("Checking jars")
        jars = ensure_jars(self._announce)
        kafka = self._kafka(folder, jars)
        self._announce("Starting Spark")
        spark = start_session(jars.spark, SPARK, folder / "spark")
        self._parts.callback(_stop, spark)
        self._world = Environment(
            settings=self._settings.override(
                {"ksql.logging.processing.topic.name": PROCESSING_LOG}
            ),
            kafka=kafka,
            admin=TopicAdmin(kafka),
            registry=None,
            spark=spark,
            state_dir=str(folder / "state"),
            data_dir=folder,
            buckets=1,
        )

    def _kafka(self, folder: Path, jars: Jars) -> KafkaConnection:
        if self._direct:
            return KafkaConnection({"bootstrap.servers": "nowhere:0"})
        self._announce("Starting Kafka")
        broker = self._parts.enter_context(EmbeddedBroker(folder / "kafka", jars=jars))
        kafka = KafkaConnection({"bootstrap.servers": broker.bootstrap_servers})
        admin = TopicAdmin(kafka)
        admin.create(TopicSpec(PROCESSING_LOG))
        self._topics = TopicSupply(admin)
        self._writer = self._parts.enter_context(closing(RecordWriter(kafka, linger_ms=0)))
        return kafka

    def run(self, case: Case) -> None:
        match case:
            case RecordCase():
                self._run_records(case)
            case ScriptCase():
                self._run_script(case)
            case ServerCase():
                label = f"case{next(self._numbers)}"
                RestCase(self._world, case, label, self._writer).run()
            case _:
                raise TypeError(f"{type(case).__name__} is no kind of case")

    def _flow(self, rehearsal: Rehearsal) -> Flow:
        world = replace(self._world, registry=rehearsal.topics.registry)
        if self._direct:
            return Flow(DirectExecutor(world), rehearsal)
        label = f"case{next(self._numbers)}"
        executor = StreamingExecutor(world, self._topics, self._writer, label)
        return Flow(executor, rehearsal)

    # ------------------------------------------------------------------- records in, records out

    def _run_records(self, case: RecordCase) -> None:
        rehearsal = check_planning(case, self._settings)
        if rehearsal is None:
            return
        flow = self._flow(rehearsal)
        with closing(flow):
            for change in rehearsal.changes:
                flow.apply(change)
            flow.feed(case.inputs)
            for topic in dict.fromkeys(record.topic for record in case.outputs):
                expected = [record for record in case.outputs if record.topic == topic]
                check_records(flow.codecs, topic, expected, flow.records(topic))

    # ------------------------------------------------------------------------------- scripts

    def _run_script(self, case: ScriptCase) -> None:
        with ExitStack() as open_flows:

            def records(rehearsal: Rehearsal) -> ScriptRecords:
                flow = open_flows.enter_context(closing(self._flow(rehearsal)))
                return ScriptRecords(flow, rehearsal, every_record=self._every_record)

            run_script(case, self._settings, records)


def _stop(spark: SparkSession) -> None:
    with suppress(Exception):  # who breaks a run off ends Spark too
        spark.stop()


class TopicSupply:
    """Topics of one partition, each given away once. The broker does not keep used ones: a long
    run would have it open too many files."""

    def __init__(self, admin: TopicAdmin) -> None:
        self._admin = admin
        self._lock = threading.Lock()
        self._ready: list[str] = []
        self._used: list[str] = []
        self._numbers = itertools.count()

    def take(self) -> str:
        with self._lock:
            if not self._ready:
                names = [f"topic-{next(self._numbers)}" for _ in range(TOPICS_AHEAD)]
                self._admin.create_all([TopicSpec(name) for name in names])
                self._ready = names[::-1]
            return self._ready.pop()

    def take_back(self, names: Iterable[str]) -> None:
        with self._lock:
            self._used += names
            if len(self._used) >= TOPICS_AHEAD:
                used, self._used = self._used, []
                with suppress(HeadraceError):  # no case fails for it
                    self._admin.delete_all(used)
