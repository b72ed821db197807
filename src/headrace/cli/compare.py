"""`headrace compare`: whether two topics hold the same."""

from __future__ import annotations

import argparse
import sys
import time

from headrace.cli.commands import FAILED, OK
from headrace.cli.connections import Connections, add_kafka
from headrace.cli.output import Output
from headrace.importing.comparing import Comparison, TopicComparer
from headrace.model.errors import HeadraceError

_AGAIN_SECONDS = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("left", metavar="TOPIC", help="a topic")
    parser.add_argument("right", metavar="TOPIC", help="the topic that should hold the same")
    add_kafka(parser, "the Kafka that has both")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--table",
        action="store_true",
        help="compare the last record of each key (default: if the topic is compacted)",
    )
    kind.add_argument("--stream", action="store_true", help="compare all records")
    parser.add_argument(
        "--any-order",
        action="store_true",
        help="the order of a key's records does not count: several queries write them",
    )
    parser.add_argument(
        "--timestamps", action="store_true", help="the records' times must be the same, too"
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="while they differ, compare again for so long: one may still be written",
    )


def run(args: argparse.Namespace) -> int:
    output = Output(sys.stdout, sys.stderr)
    connections = Connections.of(args)
    if connections.kafka is None:
        raise HeadraceError("Say where the topics are: --kafka HOST:PORT.")
    as_table = True if args.table else False if args.stream else None
    comparer = TopicComparer(
        connections.kafka, connections.registry, as_table, args.timestamps, args.any_order
    )
    deadline = time.monotonic() + args.wait
    while True:
        found = comparer.compare(args.left, args.right)
        if found.same or time.monotonic() > deadline:
            break
        time.sleep(_AGAIN_SECONDS)
    for line in _lines(args.left, args.right, found):
        output.line(line)
    return OK if found.same else FAILED


def _lines(left: str, right: str, found: Comparison) -> list[str]:
    as_what = "as tables" if found.as_table else "as streams"
    lines = [
        f"{left}: {found.records[0]} records, {found.keys[0]} keys",
        f"{right}: {found.records[1]} records, {found.keys[1]} keys",
    ]
    if found.same:
        return [*lines, f"They hold the same, compared {as_what}."]
    for difference in found.shown:
        lines.append(f"  key {difference.key}")
        lines.append(f"    {left}: {_values(difference.left)}")
        lines.append(f"    {right}: {_values(difference.right)}")
    return [*lines, f"They differ in {found.differing} keys, compared {as_what}."]


def _values(values: tuple[str, ...]) -> str:
    return ", ".join(values) if values else "nothing"
