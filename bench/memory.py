"""How much memory a server's processes hold while queries remember many keys.

    python bench/memory.py [--keys 100000] [aggregate] [kernel] [join]

The driver (Python and its JVM) and the workers count, each shared page once; the embedded broker
does not. The aim: 2,000,000 keys below 6 GiB.
"""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ground import Ground, ground

MIB = 2**20
SOURCE = "value_format='JSON', wrap_single_values=true"


def aggregate(at: Ground, keys: int) -> float:
    """Spark's own aggregate."""
    statement = (
        "CREATE TABLE by_spark AS SELECT k, COUNT(*) AS c, SUM(v) AS s FROM many GROUP BY k;"
    )
    return at.ours(statement, "many")


def kernel(at: Ground, keys: int) -> float:
    """A kernel's aggregate: each record has a result."""
    statement = (
        "CREATE TABLE by_kernel AS SELECT k, COUNT(*) AS c, SUM(v) AS s FROM many GROUP BY k;"
    )
    return at.ours(statement, "many", ksql__streams__cache__max__bytes__buffering=0)


def join(at: Ground, keys: int) -> float:
    """A stream that meets a table of all the keys."""
    at.fill("visits", keys // 10, lambda i: (b"key%d" % (i * 10), b'{"N":%d}' % i))
    at.client.execute(
        f"CREATE TABLE held (k STRING PRIMARY KEY, v BIGINT) WITH (kafka_topic='many', {SOURCE});"
        f"CREATE STREAM visits (k STRING KEY, n BIGINT) WITH (kafka_topic='visits', {SOURCE});"
    )
    statement = (
        "CREATE STREAM joined AS SELECT s.k AS k, s.n AS n, t.v AS v "
        "FROM visits s JOIN held t ON s.k = t.k;"
    )
    return at.ours(statement, "many", "visits")


KINDS: dict[str, Callable[[Ground, int], float]] = {
    "aggregate": aggregate,
    "kernel": kernel,
    "join": join,
}


def processes() -> dict[int, str]:
    """This process and all that came of it, by what they are; the broker is none of them."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found: dict[int, str] = {}
    todo = [os.getpid()]
    while todo:
        pid = todo.pop()
        with suppress(OSError):
            command = (Path("/proc") / str(pid) / "cmdline").read_text()
            if "kafka.Kafka" in command:
                continue
            driver = pid == os.getpid()
            found[pid] = "driver" if driver else "JVM" if "java" in command else "workers"
            todo += children.get(pid, [])
    return found


def held() -> dict[str, int]:
    """Bytes by kind of process."""
    sizes = dict.fromkeys(("driver", "JVM", "workers"), 0)
    for pid, kind in processes().items():
        with suppress(OSError):
            lines = (Path("/proc") / str(pid) / "smaps_rollup").read_text().splitlines()
            kilobytes = next(line.split()[1] for line in lines if line.startswith("Pss:"))
            sizes[kind] += int(kilobytes) * 1024
    return sizes


@contextmanager
def watched() -> Iterator[list[dict[str, int]]]:
    """What was held, from time to time; the largest is the first when it is over."""
    seen: list[dict[str, int]] = [held()]
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.5):
            seen.append(held())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
        seen.sort(key=lambda sizes: -sum(sizes.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory of queries that remember many keys.")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)} (default: all)")
    told = parser.parse_args()
    with ground() as at:
        at.fill("many", told.keys, lambda i: (b"key%d" % i, b'{"V":%d}' % i))
        at.client.execute(
            f"CREATE STREAM many (k STRING KEY, v BIGINT) WITH (kafka_topic='many', {SOURCE});"
        )
        for name in told.kinds or KINDS:
            with watched() as seen:
                seconds = KINDS[name](at, told.keys)
            parts = ", ".join(f"{kind} {size // MIB:,}" for kind, size in seen[0].items())
            total = sum(seen[0].values()) // MIB
            print(
                f"{name}, {told.keys:,} keys: {total:,} MiB at most ({parts}), {seconds:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
