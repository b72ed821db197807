"""Records of made-up rows: their formats, their pace, and the command that writes them."""

import json

import pytest

from headrace.cli.main import main
from headrace.datagen.quickstarts import quickstart
from headrace.datagen.rows import RowGenerator, columns_of, read_schema
from headrace.datagen.sending import RowEncoder, Target, paced
from headrace.kafka.client import KafkaConnection
from headrace.model.errors import HeadraceError
from headrace.registry.client import InMemoryRegistry
from headrace.registry.server import EmbeddedRegistry


def encoded(name, seed, **target):
    known = quickstart(name)
    record = read_schema(known.schema)
    registry = InMemoryRegistry()
    wanted = Target("t", **{"key": known.key, **target})
    encoder = RowEncoder(wanted, columns_of(record), lambda: registry)
    row = RowGenerator(record, seed).row()
    return row, encoder.record(row), registry


def test_json_with_a_bare_key(seed):
    row, record, _ = encoded("orders", seed)
    assert json.loads(record.value) == row
    assert record.key == b"\x00\x00\x00\x00"  # an INT as Kafka writes it
    assert record.timestamp is None


def test_the_time_of_a_field(seed):
    row, record, _ = encoded("orders", seed, timestamp="ordertime")
    assert record.timestamp == row["ordertime"]


def test_delimited(seed):
    row, record, _ = encoded(
        "users", seed, value_format="DELIMITED", delimiter="|", key_format="JSON"
    )
    assert record.value.decode() == "|".join(str(v) for v in row.values())
    assert record.key.decode() == json.dumps(row["userid"])


@pytest.mark.parametrize("format_", ["AVRO", "PROTOBUF", "JSON_SR"])
def test_formats_with_schemas_register_them(format_, seed):
    _, record, registry = encoded("users_", seed, value_format=format_)
    assert registry.subjects() == ["t-value"]
    assert record.value[:5] == b"\x00" + (1).to_bytes(4, "big")


def test_what_a_format_cannot_hold(seed):
    with pytest.raises(HeadraceError, match="does not support schema"):
        encoded("orders", seed, value_format="DELIMITED")


def test_no_faster_than_wanted():
    slept = []
    clock = iter([0.0, 0.0, 0.1, 0.7, 1.0, 1.5])
    assert list(paced(5, 4, lambda: next(clock), slept.append)) == [0, 1, 2, 3, 4]
    assert slept == [pytest.approx(0.15)]
    assert list(paced(3, None)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["quickstart=nothing"], "There is no quickstart 'nothing'"),
        (["topic=t"], "--schema or --quickstart is not given"),
        (["schema=s.avsc", "format=json"], "--topic is not given"),
        (["schema=gone.avsc", "format=json", "topic=t", "key=k"], "gone.avsc cannot be read"),
        (["orders"], "'orders' is not NAME=VALUE"),
        (["quickstart=users", "format=xml"], "Unknown format: XML"),
        (["quickstart=users", "key=id"], "The key field 'id' does not exist"),
        (
            ["quickstart=users", "iterations=1", "bootstrap-server=127.0.0.1:1"],
            "Kafka at 127.0.0.1:1 does not answer",
        ),
    ],
)
def test_what_the_command_refuses(arguments, words, capsys, monkeypatch):
    monkeypatch.setattr(KafkaConnection.__init__, "__defaults__", (1.0,))  # seconds to wait
    assert main(["datagen", *arguments]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("given", ["iterations=0", "msgRate=-1", "valueDelimiter=ab", "what=1"])
def test_options_that_are_none(given, capsys):
    with pytest.raises(SystemExit) as left:
        main(["datagen", "quickstart=users", given])
    assert left.value.code == 2
    assert given.partition("=")[2] in capsys.readouterr().err


@pytest.mark.heavy
def test_a_quickstart_into_kafka(broker, reader, kafka, seed, capsys):
    arguments = [
        "quickstart=orders",
        "iterations=25",
        f"seed={seed}",
        f"bootstrap-server={broker.bootstrap_servers}",
    ]
    assert main(["datagen", *arguments]) == 0
    said = capsys.readouterr()
    assert said.err == "25 records are in orders_kafka_topic_json.\n"
    assert said.out.startswith("[0] --> ([ ")
    records = list(reader.read("orders_kafka_topic_json"))
    assert [json.loads(r.value)["orderid"] for r in records] == list(range(25))


@pytest.mark.heavy
def test_avro_into_kafka_at_a_pace(broker, kafka, reader, tmp_path, capsys):
    own = tmp_path / "own.avsc"
    own.write_text(
        json.dumps(
            {
                "type": "record",
                "name": "own",
                "fields": [
                    {"name": "at", "type": {"type": "long", "arg.properties": {"options": [5]}}},
                    {"name": "who", "type": "string"},
                ],
            }
        )
    )
    with EmbeddedRegistry(kafka, 0, ()) as registry:
        options = {
            "schema": own,
            "topic": "own",
            "key": "who",
            "timestamp": "at",
            "value-format": "avro",
            "iterations": 3,
            "threads": 2,
            "msg-rate": 100,
            "print-rows": "false",
            "bootstrap-server": broker.bootstrap_servers,
            "schema-registry-url": registry.url,
        }
        assert main(["datagen", *(f"--{n}={v}" for n, v in options.items())]) == 0
    assert capsys.readouterr().out == ""
    records = list(reader.read("own"))
    assert len(records) == 6
    assert {r.timestamp for r in records} == {5}
    assert all(r.value[0] == 0 and r.key for r in records)
