"""Flink as a side of the comparison: PyFlink in its own virtual environment, jobs as Flink SQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from headrace.bench.bench_server import BenchServer
from headrace.bench.figures import FLINK, Absent
from headrace.bench.jars import ensure
from headrace.bench.jobs import FlinkSql, Job, Size
from headrace.bench.sides import topics_of
from headrace.model.errors import HeadraceError
from headrace.model.home import home

VERSION = "2.2.1"
CONNECTOR = {
    "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2": (
        "5605c691d11a501382c383fecba37a7a552467da5ab7ba904ef5d6f3d62c5616"
    )
}
PATIENCE_SECONDS = 600
# Its jobs take the longest of all, and none of our bars is measured by them.
WARM_UP_RECORDS = 300_000

# As safe and as patient as the others: state on disk and checkpoints, as often as ksqlDB commits;
# updates may wait for one another, as they do in a cache or a micro-batch.
SETTINGS = {
    "parallelism.default": "2",
    "state.backend.type": "rocksdb",
    "execution.checkpointing.interval": "2 s",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "5000",
}


class Flink:
    """Flink as a side: each job runs in its own process, after a small warm-up job."""

    name = FLINK

    def __init__(self, at: BenchServer) -> None:
        self._at = at
        self.spent: Mapping[str, float] = {}

    def why_not(self, job: Job) -> str | None:
        if isinstance(job.flink, Absent):
            return job.flink.reason
        if not _python().exists():
            return "Flink is not installed: `headrace bench --with-flink` does that"
        return None

    def seconds(self, job: Job, size: Size, sink: str) -> float:
        small = size.for_warm_up(WARM_UP_RECORDS)
        warm = self._at.sink(f"{sink}_warm")
        with tempfile.TemporaryDirectory(dir=self._at.data_dir, ignore_cleanup_errors=True) as work:
            (connector,) = ensure(CONNECTOR)
            wanted = {
                "settings": SETTINGS
                | {"pipeline.jars": connector.as_uri()}
                | {"execution.checkpointing.dir": f"file://{work}/checkpoints"},
                "passes": [self._pass(job, warm, small), self._pass(job, sink, size)],
            }
            said = self._run(json.dumps(wanted))
        self._at.admin.delete(warm)
        return float(said.split()[-1])

    def running(self, job: Job, topics: Mapping[str, str], sink: str) -> Any:
        raise HeadraceError("Flink has no such job.")

    def _pass(self, job: Job, sink: str, size: Size) -> list[str]:
        assert isinstance(job.flink, FlinkSql)
        return statements(job.flink, topics_of(self._at, job, size), sink, self._at.server.kafka)

    def _run(self, wanted: str) -> str:
        with resources.as_file(resources.files(__package__) / "flink_job.py") as program:
            ended = subprocess.run(
                [str(_python()), str(program), wanted],
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
                env={k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SPARK"))},
            )
        if ended.returncode:
            raise HeadraceError(f"Flink failed: {ended.stderr.strip()[-500:]}")
        return ended.stdout


def statements(form: FlinkSql, topics: Mapping[str, str], sink: str, kafka: str) -> list[str]:
    """A table for each topic, read up to its end, and the INSERT."""
    select = form.select.format(**{name: f"`{topic}`" for name, topic in topics.items()})
    return [
        *(_table(topics[name], columns, kafka, True) for name, columns in form.sources.items()),
        _table(sink, form.sink, kafka, False),
        f"INSERT INTO `{sink}` {select}",
    ]


def _table(topic: str, columns: str, kafka: str, reads: bool) -> str:
    changes = "PRIMARY KEY" in columns
    options = {
        "connector": "upsert-kafka" if changes else "kafka",
        "topic": topic,
        "properties.bootstrap.servers": kafka,
        "key.format": "raw",
        "value.format": "json",
        "value.fields-include": "EXCEPT_KEY",
    }
    if not changes:
        options["key.fields"] = "k"
    if reads:
        options["scan.bounded.mode"] = "latest-offset"
    if reads and not changes:
        options["scan.startup.mode"] = "earliest-offset"
    text = ", ".join(f"'{name}'='{value}'" for name, value in options.items())
    return f"CREATE TABLE `{topic}` ({columns}) WITH ({text})"


def _python() -> Path:
    return home() / "flink" / "bin" / "python"


def install(announce: Callable[[str], None]) -> None:
    """Installs PyFlink beside the jars, in a virtual environment of its own, and its connector."""
    if not _python().exists():
        announce(f"Installing Flink {VERSION} into {_python().parents[1]} (700 MB)")
        commands = [
            [sys.executable, "-m", "venv", str(_python().parents[1])],
            [str(_python()), "-m", "pip", "install", "--quiet", f"apache-flink=={VERSION}"],
        ]
        for command in commands:
            if subprocess.run(command).returncode:
                raise HeadraceError(f"Flink could not be installed: {' '.join(command)} failed.")
    ensure(CONNECTOR)
