"""The server itself: start times of the server and of queries, and its memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from headrace.bench.figures import HEADRACE, Absent, Bar, Cell, Row, samples
from headrace.bench.jobs import Size
from headrace.bench.measures import Measure, Run
from headrace.bench.processes import Peak, available, family, megabytes
from headrace.bench.sides import topics_of
from headrace.bench.workloads import aggregates, joins, stateless
from headrace.kafka.ports import free_port
from headrace.model.errors import HeadraceError

PATIENCE_SECONDS = 120
STATEMENTS = 6
NO_PROC = Absent("memory is read from /proc")
GIBIBYTES_6 = 6 * 1024


def _start_up(run: Run) -> Iterator[Row]:
    """A server of its own, as a user starts it: first on a new directory, then again on it."""
    first: list[float] = []
    again: list[float] = []
    held: list[float] = []
    for _ in range(run.repeats):
        with tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as data:
            for times in (first, again):
                with _server(Path(data)) as (pid, seconds):
                    times.append(seconds)
                    broker = _broker(Path(data))
                    if times is again and available():
                        held.append(megabytes(family(pid, frozenset({broker}))))
        run.announce(f"ready after {first[-1]:.1f} s, then {again[-1]:.1f} s")
    bar = (Bar(30, at_most=True),)
    yield Row("start-up", "start on a new directory", "s", {HEADRACE: samples(first)}, bar)
    yield Row("restart", "start on a used directory", "s", {HEADRACE: samples(again)}, bar)
    memory: Cell = samples(held) if held else NO_PROC
    yield Row(
        "memory-idle", "memory of an idle server, without its broker", "MiB", {HEADRACE: memory}
    )


def _statements(run: Run) -> Iterator[Row]:
    """From sending CREATE … AS to its answer: then the query runs."""
    for name, title, job in (
        ("stateless", "filter and projection", stateless.JOBS[0]),
        ("aggregate", "an aggregate", aggregates.aggregate(100, ())),
        ("join", "a stream-table join", joins.lookup(1_000)),
    ):
        topics = topics_of(run.at, job, Size(run.records))
        sink = run.at.sink(f"statement_{name}")
        took: list[float] = []
        for _ in range(STATEMENTS):
            began = time.monotonic()
            with run.ours.running(job, topics, sink):
                took.append(time.monotonic() - began)
        run.at.admin.delete(sink)
        run.announce(f"{title}: {took[-1]:.2f} s")
        yield Row(
            f"statement-{name}",
            f"CREATE … AS, {title}, until it runs",
            "s",
            {HEADRACE: samples(took[1:])},  # without the first of its kind
        )
    run.at.forget_sources()


def _broker(data: Path) -> int:
    """The process of a server's embedded broker, whose memory is not the server's."""
    return int(json.loads((data / "kafka" / "broker.pid").read_text())["broker"])


@contextmanager
def _server(data: Path) -> Iterator[tuple[int, float]]:
    """Its process, and the seconds until it answered."""
    port = free_port()
    command = [sys.executable, "-m", "headrace.cli.main", "start", "--data-dir", str(data)]
    command += ["--port", str(port), "--kafka-port", str(free_port())]
    command += ["--registry-port", str(free_port())]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while not _answers(port):
                if process.poll() is not None or time.monotonic() - began > PATIENCE_SECONDS:
                    raise HeadraceError("A server did not start.")
                time.sleep(0.05)
            yield process.pid, time.monotonic() - began
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/info", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _memory(run: Run) -> Iterator[Row]:
    """What driver and workers hold with many keys in aggregates, then in a joined table."""
    if not available():
        yield Row("memory-keys", "many keys", "MiB", {HEADRACE: NO_PROC})
        return
    at, keys = run.at, run.records
    broker = _broker(at.data_dir)
    for name, title, job, size in (
        ("aggregate", "an aggregate", aggregates.aggregate(keys, ()), Size(keys)),
        ("kernel", "a kernel's aggregate", aggregates.each_change(keys), Size(keys)),
        ("join", "a joined table", joins.lookup(keys), Size(min(keys, 100_000))),
    ):
        topics = topics_of(at, job, size)
        sink = at.sink(f"held_{name}")
        with (
            Peak(os.getpid(), frozenset({broker})) as peak,
            run.ours.running(job, topics, sink) as query,
        ):
            at.await_end(lambda: query.streaming, *topics.values())
        held = peak.megabytes
        at.admin.delete(sink)
        run.announce(f"{keys:,} keys in {title}: {held:,.0f} MiB")
        yield Row(
            f"memory-{name}",
            f"most memory with {keys:,} keys in {title}, driver and workers",
            "MiB",
            {HEADRACE: samples([held])},
            (Bar(GIBIBYTES_6, at_most=True),),
            records=keys,
        )
    at.forget_sources()


MEASURES = (
    Measure("start-up", "start-up time and idle memory", _start_up, records=0),
    Measure("statements", "how long a statement takes to start a query", _statements, records=100),
    Measure("memory", "memory with many keys", _memory, records=2_000_000),
)
