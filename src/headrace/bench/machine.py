"""The machine and the versions that the figures were measured on."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from headrace import __version__
from headrace.bench import flink, kafka_streams
from headrace.kafka.jars import pins
from headrace.kafka.java_home import find_java


def about(repeats: int) -> dict[str, str]:
    broker = next(pin.revision for pin in pins() if pin.name.startswith("kafka_"))
    return {
        "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "repeats": str(repeats),
        "machine": f"{os.cpu_count()} cores ({_processor()}), {_memory()}, {platform.platform()}",
        "versions": ", ".join(
            [
                f"Headrace {__version__}",
                f"PySpark {version('pyspark')}",
                f"Kafka {broker}",
                f"Kafka Streams {kafka_streams.VERSION}",
                f"Flink {flink.VERSION}",
                f"Python {platform.python_version()}",
                f"Java {find_java().version}",
            ]
        ),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return "memory unknown"
    return f"{total / 2**30:.0f} GiB"
