"""Kafka Streams as a side of the comparison: its jars, and the jobs compiled and run for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from importlib import resources
from typing import Any

from headrace.bench.bench_server import BenchServer
from headrace.bench.figures import STREAMS, Absent
from headrace.bench.jars import ensure
from headrace.bench.jobs import Job, Size
from headrace.bench.sides import topics_of
from headrace.kafka.jars import ensure_jars
from headrace.kafka.java_home import find_java
from headrace.model.errors import HeadraceError

VERSION = "4.3.0"
# Beside what the broker has on its class path.
PINS = {
    f"org.apache.kafka:kafka-streams:{VERSION}": (
        "aa3a70c72cb04c72eabcf6d04762c3a3ca8522e93654eca9180e7877172433c4"
    ),
    "org.rocksdb:rocksdbjni:10.1.3": (
        "e7f925287d9fe2574fb7c7a86f7facaa9b8ab602a2eed0e598bf633528121498"
    ),
}


class KafkaStreams:
    """Kafka Streams as a side: each job runs in its own JVM, after a small warm-up job."""

    name = STREAMS

    def __init__(self, at: BenchServer, files: ExitStack) -> None:
        self._at = at
        self.spent: Mapping[str, float] = {}
        self._files = files

    def why_not(self, job: Job) -> str | None:
        if isinstance(job.streams, Absent):
            return job.streams.reason
        if shutil.which("javac") is None:
            return "there is no Java compiler (javac, of a JDK) to compile its jobs with"
        return self._unfetched

    @cached_property
    def _unfetched(self) -> str | None:
        try:
            ensure(PINS)
        except HeadraceError as e:
            return str(e)
        return None

    @cached_property
    def _class_path(self) -> str:
        classes = self._files.enter_context(tempfile.TemporaryDirectory(prefix="headrace-bench-"))
        path = os.pathsep.join(map(str, [*ensure(PINS), *ensure_jars().broker, classes]))
        with resources.as_file(resources.files(__package__) / "StreamsJob.java") as source:
            subprocess.run(["javac", "-cp", path, "-d", classes, str(source)], check=True)
        return path

    def seconds(self, job: Job, size: Size, sink: str) -> float:
        small = size.for_warm_up()
        warm = self._at.sink(f"{sink}_warm")
        with self._started(
            job,
            self._pass(job, warm, small),
            self._pass(job, sink, size),
        ) as process:
            said, _ = process.communicate()
            words = said.split()
            if process.returncode or not words:
                raise HeadraceError(f"Kafka Streams ended with {process.returncode}: {said}")
        self._forget(warm, f"{warm}-", f"{sink}-")
        return float(words[-1])

    @contextmanager
    def running(self, job: Job, topics: Mapping[str, str], sink: str) -> Iterator[Any]:
        with self._started(job, f"{sink}=0={','.join(topics.values())}") as process:
            assert process.stdout is not None and process.stdin is not None
            process.stdout.readline()  # it says so when it is ready
            try:
                yield process
            finally:
                process.stdin.close()
        self._forget(f"{sink}-")

    def _forget(self, *prefixes: str) -> None:
        """Deletes topics: Kafka Streams leaves those that it made for itself."""
        names = [name for name in self._at.admin.topics() if name.startswith(prefixes)]
        if names:
            self._at.admin.delete_all(names)

    def _pass(self, job: Job, sink: str, size: Size) -> str:
        topics = topics_of(self._at, job, size)
        counts = ",".join(str(source.count(size)) for source in job.sources)
        return f"{sink}={counts}={','.join(topics.values())}"

    @contextmanager
    def _started(self, job: Job, *passes: str) -> Iterator[subprocess.Popen[str]]:
        with tempfile.TemporaryDirectory(
            dir=self._at.data_dir, ignore_cleanup_errors=True
        ) as state:
            command = [str(find_java().executable), "-Xmx2g", "-XX:+UseParallelGC"]
            command += ["-cp", self._class_path, "StreamsJob"]
            command += [str(job.streams), self._at.server.kafka, state, *passes]
            with subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            ) as process:
                try:
                    yield process
                    process.wait(60)
                finally:
                    if process.poll() is None:
                        process.kill()
