"""How many queries one driver holds: what each step of more of them takes, until it is too much.

    python bench/driver_limit.py [QUERIES] [STEP]

Half of the queries are stateful, and all read one topic. After each step: seconds until its queries
run, memory and threads of the driver's JVM, CPU when nothing comes, and the way of one record
through all of them (until the last has finished its batch).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from headrace.bench.bench_server import BenchServer, bench_server, position
from headrace.bench.jobs import Size
from headrace.bench.processes import percent_of_core
from headrace.bench.workloads.many_queries import KINDS, MANY, NAMES, SMALL
from headrace.kafka.records import NewRecord, RecordWriter

QUERIES, STEP = 100, 25
IDLE_SECONDS, PATIENCE_SECONDS = 5, 60


def start(at: BenchServer, numbers: range, many: str, names: str) -> None:
    for i in numbers:
        at.create(KINDS[i % len(KINDS)].format(i=i, j=i + 1, many=many, names=names))


def one_record(at: BenchServer, topic: str) -> float:
    """Seconds until every query has got through it."""
    with RecordWriter(at.kafka, linger_ms=0) as writer:
        writer.write(NewRecord(topic, *MANY.record(1)))
    began = time.monotonic()
    end = sum(at.admin.end_offsets(topic).values())
    waiting = [query.id for query in at.server.engine.queries]
    while waiting and time.monotonic() - began < PATIENCE_SECONDS:
        query = at.server.engine.queries.get(waiting[-1])
        assert query is not None
        if position(query, topic) >= end:
            waiting.pop()
        else:
            time.sleep(0.01)
    return time.monotonic() - began if not waiting else float("inf")


def driver(at: BenchServer) -> dict[str, float]:
    """Of the driver's JVM: heap in use after a collection, memory of the process, threads."""
    jvm: Any = at.spark._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    status = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return {
        "heap MB": (runtime.totalMemory() - runtime.freeMemory()) / 1e6,
        "process MB": int(fields["VmRSS"].split()[0]) / 1e3,
        "threads": int(fields["Threads"]),
    }


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else QUERIES
    step = int(sys.argv[2]) if len(sys.argv) > 2 else STEP
    with bench_server(lambda text: print(text, file=sys.stderr)) as at:
        many, names = at.source(MANY, Size(SMALL)), at.source(NAMES, Size(SMALL))
        for first in range(0, most, step):
            count = min(first + step, most)
            began = time.monotonic()
            start(at, range(first, count), many, names)
            one_record(at, many)
            figures = {"seconds to start": time.monotonic() - began, **driver(at)}
            figures["idle % of a core"] = percent_of_core(os.getpid(), IDLE_SECONDS)
            figures["one record through all, s"] = min(one_record(at, many) for _ in range(3))
            figures["failed"] = sum(bool(query.errors) for query in at.server.engine.queries)
            shown = ", ".join(f"{name} {value:,.1f}" for name, value in figures.items())
            print(f"{count} queries: {shown}", flush=True)


if __name__ == "__main__":
    main()
