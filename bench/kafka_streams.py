"""Kafka Streams beside us: its jars, and our small jobs for it (bench/java), compiled and run."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from headrace.topics.jars import IVY_SETTINGS, _ivy_jar, _proxy_options, ensure_jars, home
from headrace.topics.java import find_java

# Beside what the broker has on its class path.
PINS = {
    "org.apache.kafka:kafka-streams:4.3.0": (
        "aa3a70c72cb04c72eabcf6d04762c3a3ca8522e93654eca9180e7877172433c4"
    ),
    "org.rocksdb:rocksdbjni:10.1.3": (
        "e7f925287d9fe2574fb7c7a86f7facaa9b8ab602a2eed0e598bf633528121498"
    ),
}
SOURCE = Path(__file__).parent / "java" / "StreamsJob.java"


def available() -> bool:
    """Whether there is a Java compiler."""
    return shutil.which("javac") is not None


def jars() -> list[Path]:
    """Fetched once, and checked."""
    directory = home() / "jars" / "bench"
    wanted = {name: directory / "{1}-{2}.jar".format(*name.split(":")) for name in PINS}
    missing = [name for name, path in wanted.items() if not _intact(path, PINS[name])]
    if missing:
        _fetch(missing, directory)
    for name in missing:
        if not _intact(wanted[name], PINS[name]):
            raise SystemExit(f"{name} could not be fetched.")
    return list(wanted.values())


def _intact(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _fetch(names: list[str], directory: Path) -> None:
    lines = [
        f'<dependency org="{o}" name="{n}" rev="{r}" conf="default->default" transitive="false"/>'
        for o, n, r in (name.split(":") for name in names)
    ]
    with tempfile.TemporaryDirectory() as work:
        settings = os.environ.get("HEADRACE_IVY_SETTINGS") or f"{work}/settings.xml"
        Path(f"{work}/settings.xml").write_text(IVY_SETTINGS)
        Path(f"{work}/ivy.xml").write_text(
            '<ivy-module version="2.0"><info organisation="headrace" module="bench"/>'
            f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
        )
        command = [str(find_java().executable), *_proxy_options(), "-jar", str(_ivy_jar())]
        command += ["-settings", settings, "-ivy", f"{work}/ivy.xml", "-cache", f"{work}/cache"]
        command += ["-retrieve", f"{directory}/[artifact]-[revision].[ext]"]
        subprocess.run(command, check=False, capture_output=True)


@cache
def _class_path() -> str:
    classes = tempfile.mkdtemp(prefix="headrace-bench-java-")
    path = os.pathsep.join(map(str, [*jars(), *ensure_jars().broker, classes]))
    subprocess.run(["javac", "-cp", path, "-d", classes, str(SOURCE)], check=True)
    return path


def seconds(job: str, kafka: str, records: int, sink: str, *topics: str) -> float:
    """How long a job takes from its start until everything is read and written."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as state:
        command = [str(find_java().executable), "-Xmx2g", "-XX:+UseParallelGC"]
        command += ["-cp", _class_path(), "StreamsJob", job, kafka, str(records), state, sink]
        answer = subprocess.run(
            [*command, *topics], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return float(answer.stdout.split()[-1])
