"""`headrace demo`: starts a server and runs a small pipeline on a few orders."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.commands import FAILED, OK
from headrace.client import Client

if TYPE_CHECKING:
    from headrace.kafka.records import Record
    from headrace.server.launch import RunningServer

# A record as it is printed: key, value and time.
Shown = tuple[object, str, int]

# A fixed moment, so that the demo always prints the same.
NOON = 1_767_268_800_000

ORDERS: tuple[tuple[int, dict[str, object], str | None, int], ...] = (
    (1, {"customer": "ada", "item": "keyboard", "amount": 120.0}, "t-100", NOON),
    (2, {"customer": "grace", "item": "cable", "amount": 9.5}, "t-101", NOON + 1000),
    (3, {"customer": "ada", "item": "monitor", "amount": 310.25}, None, NOON + 2000),
)
SHIPMENTS: tuple[tuple[int, dict[str, object], int], ...] = (
    (1, {"carrier": "swift"}, NOON + 60_000),
    (3, {"carrier": "gull"}, NOON + 90_000),
)

# What each topic must hold in the end: key and value as text, and the record's time.
EXPECTED: dict[str, list[Shown]] = {
    "LARGE_ORDERS": [
        (
            1,
            '{"CUSTOMER":"ada","AMOUNT":120.0,"TRACE_ID":"t-100","ORDERED_AT":1767268800000}',
            NOON,
        ),
        (
            3,
            '{"CUSTOMER":"ada","AMOUNT":310.25,"TRACE_ID":null,"ORDERED_AT":1767268802000}',
            NOON + 2000,
        ),
    ],
    "ITEMS": [(1, '"keyboard"', NOON), (2, '"cable"', NOON + 1000), (3, '"monitor"', NOON + 2000)],
    "SPENDING": [
        ("ada", '{"ORDERS":2,"TOTAL":430.25}', NOON + 2000),
        ("grace", '{"ORDERS":1,"TOTAL":9.5}', NOON + 1000),
    ],
    "SHIPPED": [
        (1, '{"CUSTOMER":"ada","CARRIER":"swift"}', NOON + 60_000),
        (3, '{"CUSTOMER":"ada","CARRIER":"gull"}', NOON + 90_000),
    ],
}
PATIENCE_SECONDS = 120


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep", action="store_true", help="go on serving afterwards, until Ctrl-C"
    )
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where to keep everything (default: temporary)"
    )


def run(args: argparse.Namespace) -> int:
    from headrace.server.launch import LaunchOptions, RunningServer
    from headrace.server.run import announce, serve

    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as temporary:
        options = LaunchOptions(args.data_dir or Path(temporary), args.data_dir is None)
        if args.keep:
            return serve(options, show)
        with RunningServer(options, announce) as server:
            return show(server)


def show(server: RunningServer) -> int:
    """Runs the pipeline and prints what went in and what came out."""
    script = demo_script()
    print(f"\n-- examples/demo.sql, sent to {server.url}\n")
    with Client(server.url) as client:
        for entity in client.execute(script):
            status = entity.get("commandStatus", {})
            print(f"  {entity.get('commandId', ''):<28} {status.get('message', '')}")
    produce(server.kafka)
    print("\n-- went in\n")
    for key, value, trace, _ in ORDERS:
        header = f"   trace-id: {trace}" if trace else ""
        print(f"  orders         {key}  {json.dumps(value)}{header}")
    for key, value, _ in SHIPMENTS:
        print(f"  shipments      {key}  {json.dumps(value)}")
    print("\n-- came out\n")
    results = [_show_topic(server.kafka, topic) for topic in EXPECTED]
    print()
    return OK if all(results) else FAILED


def demo_script() -> str:
    """The script of the examples; it travels with the package."""
    return (resources.files("headrace.cli") / "demo.sql").read_text()


def produce(kafka: str) -> None:
    """Writes the demo's records."""
    from headrace.kafka.client import KafkaConnection
    from headrace.kafka.records import NewRecord, RecordWriter

    records = [
        NewRecord(
            "orders",
            key.to_bytes(4, "big"),
            json.dumps(value).encode(),
            (("trace-id", trace.encode()),) if trace else (),
            at,
        )
        for key, value, trace, at in ORDERS
    ]
    records += [
        NewRecord("shipments", key.to_bytes(4, "big"), json.dumps(value).encode(), (), at)
        for key, value, at in SHIPMENTS
    ]
    with RecordWriter(KafkaConnection({"bootstrap.servers": kafka})) as writer:
        writer.write_all(records)


def _show_topic(kafka: str, topic: str) -> bool:
    """Waits until the topic holds what it must, and prints it; says so if it does not."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    expected = sorted(EXPECTED[topic], key=str)
    while (rows := _rows(kafka, topic)) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    for key, value, at in rows:
        print(f"  {topic:<14} {key}  {value}   time: {at}")
    if rows != expected:
        print(f"  {topic} should have held {expected}")
    return rows == expected


def _rows(kafka: str, topic: str) -> list[Shown]:
    from headrace.kafka.client import KafkaConnection
    from headrace.kafka.records import RecordReader

    latest: dict[object, Shown] = {}
    for record in RecordReader(KafkaConnection({"bootstrap.servers": kafka})).read(topic):
        key = _key(record)
        latest[key] = (key, (record.value or b"null").decode(), record.timestamp)
    return sorted(latest.values(), key=str)


def _key(record: Record) -> object:
    key = record.key or b""
    return int.from_bytes(key, "big") if record.topic != "SPENDING" else key.decode()
