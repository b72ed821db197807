"""Push queries whose clients do not read are parked, and go on where they were. Spark is
pretended: it keeps the position of finished batches, and runs one that was not finished again."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headrace.engine.queries import push as push_module
from headrace.engine.queries.parking import Parking
from headrace.engine.queries.push import PARK_SECONDS, START_SECONDS, PushQuery
from headrace.engine.queries.retries import Retries
from headrace.engine.queries.row_buffer import BUFFERED_BYTES
from headrace.engine.queries.start_slots import StartSlots
from headrace.model.errors import HeadraceError, UnavailableError
from headrace.model.requests import LIMIT_REACHED
from headrace.model.schema import Column, Schema
from headrace.model.sources import SourceKind
from headrace.model.types import BIGINT
from headrace.spark.internals.callbacks import UnfinishedBatch
from server_process import eventually

SCHEMA = Schema((Column("N", BIGINT),))
EACH = 10  # rows of a batch


def batch_of(first, size):
    """A micro-batch, as Spark hands it over; its rows have so many bytes, as they say."""
    columns = {"N": list(range(first, first + EACH)), "null": [False] * EACH}
    rows = pa.RecordBatch.from_pydict({**columns, "dead": columns["null"], "errors": [None] * EACH})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    packed = SimpleNamespace(rows=sink.getvalue().to_pybytes(), file=None, size=size)
    return SimpleNamespace(collect=lambda: [packed], sparkSession=None)


def away():
    """What Spark tells when no broker answers."""
    said = "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node"
    failure = PySparkException(f"{said}\n=== Streaming Query ===")
    failure._cause = PySparkException(said)
    return failure


class Run:
    """One run of a streaming query in its thread, until it fails or is stopped."""

    def __init__(self, spark, take):
        self.runId = f"run {len(spark.runs) + 1}"
        self.stopped, self.failure, self.progress = threading.Event(), None, None
        self._spark, self._take = spark, take
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._jsq = SimpleNamespace(
            isActive=lambda: self.isActive,
            lastProgress=lambda: self.progress,
            status=lambda: SimpleNamespace(message=lambda: spark.message),
        )
        self._thread.start()

    def _work(self):
        try:
            self._spark.look_for_records()
            while self._spark.batches_left() and not self.stopped.is_set():
                number = self._spark.finished
                self._take(batch_of(number * EACH, self._spark.size), number)
                self._spark.finish(number)
                self.progress = "a batch"
        except Exception as failure:
            self.failure = failure
            return
        self.stopped.wait()

    @property
    def isActive(self):
        self._spark.answer()
        return self._thread.is_alive()

    def exception(self):
        return self.failure

    def fail(self, failure):
        self.failure = failure
        self.stop()

    def stop(self):
        self._spark.answer()
        self.stopped.set()
        self._thread.join(5)
        assert not self._thread.is_alive()


class Spark:
    """A program of so many batches, and its checkpoint."""

    checkpoint = "a checkpoint"

    def __init__(self, batches, size=BUFFERED_BYTES):
        self.batches, self.size = batches, size
        self.finished = 0
        self.runs, self.message, self.forgotten = [], "", 0
        self.gone = None  # what its JVM answers, if it does not
        self.refusal, self.asked = None, 0  # by whoever is needed to build it
        self.broker = None  # why it cannot be asked for records
        self.broken_off = None  # the batch that fails once when all of its rows are there

    def answer(self):
        if self.gone is not None:
            raise self.gone

    def batches_left(self):
        return self.batches - self.finished

    def look_for_records(self):
        if self.broker is not None:
            raise self.broker

    def finish(self, number):
        if number == self.broken_off:
            self.broken_off = None
            raise away()
        self.finished += 1

    def prepare(self):
        self.asked += 1
        if self.refusal is not None:
            raise self.refusal

    def start(self, take):
        assert not self.runs or not self.runs[-1].isActive
        self.runs.append(Run(self, take))
        return self.runs[-1]

    def forget(self):
        self.forgotten += 1


class Stage:
    """Push queries, and time that passes for them."""

    def __init__(self, slots=4, patience=30.0):
        self.slots = StartSlots(slots)
        self.patience = patience
        self.running: list[PushQuery] = []
        self.parking = Parking(self)

    def __iter__(self):
        return iter(list(self.running))

    def push(self, spark, limit=None, **more):
        made = PushQuery(
            f"query {len(self.running)}",
            "SELECT",
            SCHEMA,
            SourceKind.STREAM,
            spark,
            None,
            limit,
            self.slots,
            Retries(self.patience, first_pause=0.02),
            self.running.remove,
            lambda entries: None,
            **more,
        )
        self.running.append(made)
        made.start(0)
        return made

    def pass_by(self, seconds):
        self.parking.look(time.monotonic() + seconds)

    def park(self, push):
        # The writer waits for a moment longer when there is room again.
        eventually(lambda: push._buffer.is_full and push.waiting_bytes >= BUFFERED_BYTES, 5)
        self.pass_by(PARK_SECONDS)
        assert push.is_parked


@pytest.fixture(autouse=True)
def no_connections(monkeypatch):
    closed = []
    line = SimpleNamespace(close=lambda: closed.append(1))
    monkeypatch.setattr(push_module, "CallbackConnection", lambda session: line)
    return closed


@pytest.fixture
def stage():
    made = Stage()
    yield made
    for push in made:
        push.close()


def read(push, rows):
    """So many rows, however long that takes."""
    found, deadline = [], time.monotonic() + 20
    while len(found) < rows and time.monotonic() < deadline:
        batch = push.next_batch(0.5)
        if batch is None:
            break
        found += [row.values[0] for row in batch]
    return found


# ------------------------------------------------------------------------------------ parking


def test_a_client_that_does_not_read_has_its_query_parked_and_misses_nothing(stage, no_connections):
    spark = Spark(batches=7)
    push = stage.push(spark)
    found = []
    for rows in (0, 2 * EACH, 2 * EACH):  # then it pauses until it is parked
        found += read(push, rows)
        stage.park(push)
    assert not spark.runs[-1].isActive and isinstance(spark.runs[-1].failure, UnfinishedBatch)
    assert len(no_connections) == len(spark.runs)
    found += read(push, 7 * EACH - len(found))
    assert found == list(range(7 * EACH))
    assert push.next_batch(0) == []  # and it goes on
    assert push.run == spark.runs[-1].runId


def test_who_reads_however_slowly_is_not_parked(stage):
    push = stage.push(Spark(batches=5))
    eventually(lambda: push._buffer.is_full, 5)
    stage.pass_by(PARK_SECONDS - 0.5)
    assert not push.is_parked
    assert len(read(push, EACH)) == EACH
    eventually(lambda: push._buffer.is_full, 5)
    stage.pass_by(PARK_SECONDS - 0.5)
    assert not push.is_parked


def test_a_query_that_waits_for_records_is_not_parked(stage):
    push = stage.push(Spark(batches=1))
    eventually(lambda: push.waiting_bytes > 0, 5)
    stage.pass_by(1000)
    assert not push.is_parked


def test_what_is_buffered_is_read_before_the_query_starts_again(stage):
    spark = Spark(batches=6, size=BUFFERED_BYTES // 2)
    push = stage.push(spark)
    stage.park(push)
    for _ in range(2):
        assert len(push.next_batch(5)) == EACH
        assert len(spark.runs) == 1
    assert len(read(push, EACH)) == EACH
    assert len(spark.runs) == 2


def test_the_limit_counts_across_a_pause(stage):
    push = stage.push(Spark(batches=9), limit=3 * EACH + 5)
    found = read(push, 5)
    stage.park(push)
    found += read(push, 1000)
    assert found == list(range(3 * EACH + 5))
    assert push.final_message == LIMIT_REACHED and not stage.running


def test_a_parked_query_can_be_closed(stage):
    spark = Spark(batches=5)
    push = stage.push(spark)
    stage.park(push)
    push.close()
    assert not stage.running and spark.forgotten == 1
    assert push.next_batch(5) is None and len(spark.runs) == 1


def test_a_parked_query_that_cannot_start_again_tells_its_reader(stage):
    spark = Spark(batches=5)
    push = stage.push(spark)
    stage.park(push)
    spark.refusal = HeadraceError("no JVM any more")
    with pytest.raises(HeadraceError, match="no JVM"):
        read(push, 1000)
    assert not stage.slots.has(push)


@pytest.mark.parametrize("told", [Py4JError("calling o1.readStream"), ConnectionError("111")])
@pytest.mark.parametrize("when", ["it is parked", "it runs"])
def test_a_query_whose_spark_is_gone_tells_that_in_a_sentence(stage, told, when):
    spark = Spark(batches=1 if when == "it runs" else 5)
    push = stage.push(spark)
    if when == "it is parked":
        stage.park(push)
        spark.refusal = told
    else:
        spark.gone = told
    with pytest.raises(UnavailableError, match=r"Spark does not answer.* Ask again"):
        read(push, 1000)
    push.close()
    assert not stage.running and spark.forgotten == 1


def test_one_that_cannot_be_parked_fails_and_others_are_parked(stage, monkeypatch):
    first, second = stage.push(Spark(batches=5)), stage.push(Spark(batches=5))

    def stop():
        raise Py4JError("it does not end")

    monkeypatch.setattr(first._streaming, "stop", stop)
    for push in (first, second):
        eventually(lambda push=push: push._buffer.is_full, 5)
    stage.pass_by(PARK_SECONDS)
    assert second.is_parked and stage.running == [second]
    with pytest.raises(HeadraceError, match="could not be parked: it does not end"):
        first.next_batch(0)


def test_py4j_does_not_log_a_query_that_is_parked(caplog):
    log = logging.getLogger("py4j.clientserver")
    for failure in (UnfinishedBatch(), ValueError()):
        try:
            raise failure
        except Exception:
            log.exception("in a call")
    assert [record.exc_info[0] for record in caplog.records] == [ValueError]


def test_checkpoints_that_a_killed_server_left_are_deleted_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr(push_module.tempfile, "tempdir", str(tmp_path))
    here = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
    one, another = (SimpleNamespace(spark=here, data_dir=tmp_path / name) for name in "ab")
    left = [Path(push_module._checkpoint(env, "query")) for env in (one, one, another)]
    (left[0] / "offsets").mkdir()
    push_module.sweep(one)
    assert [path.exists() for path in left] == [False, False, True]


# ------------------------------------------------------------ what it needs is away

REGISTRY_AWAY = UnavailableError("The schema registry at http://registry does not answer")


def test_a_registry_that_is_away_when_a_parked_query_starts_again_is_waited_for(stage):
    spark = Spark(batches=5)
    push = stage.push(spark)
    stage.park(push)
    spark.refusal = REGISTRY_AWAY
    found = read(push, EACH)
    before = spark.asked
    while spark.asked < before + 4:
        assert push.next_batch(0.02) == []
        assert push.is_parked and not stage.slots.has(push)  # others may start meanwhile
    spark.refusal = None
    found += read(push, 4 * EACH)
    assert found == list(range(5 * EACH)) and len(spark.runs) == 2


def test_a_broker_that_is_away_when_a_parked_query_starts_again_is_waited_for(stage):
    spark = Spark(batches=5)
    push = stage.push(spark)
    stage.park(push)
    spark.broker = away()
    found = read(push, EACH)
    deadline = time.monotonic() + 10
    while len(spark.runs) < 4 and time.monotonic() < deadline:
        assert push.next_batch(0.02) == []
        assert not push.is_parked or not stage.slots.has(push)
    assert len(spark.runs) == 4
    spark.broker = None
    found += read(push, 4 * EACH)
    assert found == list(range(5 * EACH))


def test_a_batch_that_was_broken_off_when_its_rows_were_there_does_not_bring_them_again(stage):
    spark = Spark(batches=3, size=1)
    spark.broken_off = 1
    push = stage.push(spark)
    assert read(push, 3 * EACH) == list(range(3 * EACH))
    assert push.next_batch(0.05) == [] and len(spark.runs) == 2


@pytest.mark.parametrize("what", ["registry", "broker"])
def test_one_that_waits_too_long_for_what_is_away_tells_its_reader(what):
    stage = Stage(patience=0.3)
    spark = Spark(batches=5)
    push = stage.push(spark)
    stage.park(push)
    spark.refusal = REGISTRY_AWAY if what == "registry" else None
    spark.broker = away() if what == "broker" else None
    told = "registry does not answer" if what == "registry" else "TimeoutException: Timed out"
    with pytest.raises(HeadraceError, match=f"The query failed: It could not go on .*: .*{told}"):
        read(push, 1000)
    assert spark.asked > 2 and not stage.running
    assert not stage.slots._asked and not stage.slots._starting


def test_one_that_waits_for_what_is_away_can_be_closed(stage):
    spark = Spark(batches=5)
    push = stage.push(spark)
    stage.park(push)
    spark.refusal = REGISTRY_AWAY
    assert len(read(push, EACH)) == EACH
    told = []
    reader = threading.Thread(target=lambda: told.append(push.next_batch(30)), daemon=True)
    reader.start()
    eventually(lambda: spark.asked > 3, 10)
    push.close()
    reader.join(5)
    assert told == [None] and not stage.running


def test_what_was_there_again_meanwhile_is_waited_for_anew(stage):
    spark = Spark(batches=9)
    push = stage.push(spark)
    found = []
    for _ in range(2):
        stage.park(push)
        spark.refusal = REGISTRY_AWAY
        found += read(push, EACH)
        assert push.next_batch(0.01) == []
        push._retries._since -= 1000  # and it comes back in the last moment
        spark.refusal = None
        found += read(push, EACH)
    assert found == list(range(4 * EACH))


def test_a_query_without_records_that_looked_for_some_waits_anew(stage):
    spark = Spark(batches=0)
    spark.broker = away()
    push = stage.push(spark)
    eventually(lambda: push.next_batch(0.05) == [] and len(spark.runs) > 1, 5)
    spark.broker = None
    eventually(lambda: push.next_batch(0.05) == [] and spark.runs[-1].isActive, 5)
    spark.runs[-1].progress = "none were there"
    push._retries._since -= 1000
    count = len(spark.runs)
    spark.runs[-1].fail(away())
    eventually(lambda: push.next_batch(0.05) == [] and len(spark.runs) > count, 5)


# ------------------------------------------------------------------------------------ starts


def test_few_start_at_once_and_the_others_when_those_have_their_first_batch():
    stage = Stage(slots=1)
    first, second = Spark(batches=0), Spark(batches=1)
    pushes = [stage.push(first), stage.push(second)]
    stage.pass_by(0)
    assert pushes[1].next_batch(0) == [] and not second.runs
    first.message = "Waiting for data to arrive"
    stage.pass_by(0)
    assert read(pushes[1], EACH) == list(range(EACH))
    third = stage.push(Spark(batches=1))  # the second has had its first batch
    assert read(third, EACH) == list(range(EACH))
    for push in stage:
        push.close()


def test_a_start_that_takes_long_or_is_closed_holds_nobody_up():
    stage = Stage(slots=1)
    pushes = [stage.push(Spark(batches=0)) for _ in range(3)]
    stage.pass_by(START_SECONDS)
    assert pushes[1].next_batch(0) == [] and not pushes[1].is_parked
    pushes[1].close()
    assert pushes[2].next_batch(0) == [] and not pushes[2].is_parked
    for push in stage:
        push.close()


def test_a_query_that_waits_to_start_can_be_closed():
    stage = Stage(slots=1)
    first, second = stage.push(Spark(batches=0)), stage.push(Spark(batches=0))
    told = []
    reader = threading.Thread(target=lambda: told.append(second.next_batch(30)), daemon=True)
    reader.start()
    eventually(lambda: stage.slots._asked.get(second) is True, 5)
    second.close()
    reader.join(5)
    assert told == [None]
    assert second.next_batch(0) is None
    first.close()
    assert not stage.slots._asked and not stage.slots._starting


def test_after_the_rows_of_a_batch_comes_its_token():
    stage = Stage()
    push = stage.push(Spark(2, size=1), token_of=lambda batch: f"token {batch}")
    seen = []
    while len(seen) < 2 * EACH + 2:
        seen += push.next_batch(5)
    push.close()
    tokens = {i: row.token for i, row in enumerate(seen) if row.token is not None}
    assert tokens == {EACH: "token 0", 2 * EACH + 1: "token 1"}
    assert [row.values[0] for row in seen if row.token is None] == list(range(2 * EACH))


def test_a_limit_counts_rows_and_not_tokens():
    push = Stage().push(Spark(3, size=1), limit=EACH + 1, token_of=lambda batch: "token")
    rows = []
    while (batch := push.next_batch(5)) is not None:
        rows += [row for row in batch if row.token is None]
    assert len(rows) == EACH + 1
    assert push.final_message == LIMIT_REACHED
