"""A shop that runs on a recorded ksqlDB: what it made, what its topics hold, and what its queries
have written, worked out by hand."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable

from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import NewRecord, RecordWriter
from recorded_ksqldb import RecordedKsqlDb

# Yesterday's midnight: no topic's retention is over by now.
DAY = 86_400_000
T = (int(time.time() * 1000) // DAY - 1) * DAY
MINUTE = 60_000
# Topics that its queries write, and the first of them that are tables'.
TABLES = ("SPENDING", "CLICKS_PER_MINUTE", "PRICED")
STREAMS = ("BIG", "BY_CUSTOMER", "SHIPPED", "NAMED", "TAG", "DOUBLED", "HOT", "shop_archive")
# Registers a schema under a subject, and gives its id.
Register = Callable[[str, str, str], int]

_AVRO = {
    "shop_shipments": [["ORDER", "string"], ["CARRIER", "string"]],
    "shop_items": [["NAME", "string"], ["GRAMS", "int"]],
}
_PROTO = (
    'syntax = "proto3";\n\nmessage ConnectDefault1 {\n  double TEMP = 1;\n  string UNIT = 2;\n}\n'
)


def shop(service_id: str = "default_") -> RecordedKsqlDb:
    db = RecordedKsqlDb(service_id)
    db.command(
        "stream/`KSQL_PROCESSING_LOG`/create",
        "CREATE STREAM KSQL_PROCESSING_LOG (LOGGER STRING, LEVEL STRING, `TIME` BIGINT) WITH "
        f"(KAFKA_TOPIC='{service_id}ksql_processing_log', VALUE_FORMAT='JSON');",
    )
    _types_and_sources(db)
    _queries(db)
    return db


def _types_and_sources(db: RecordedKsqlDb) -> None:
    db.type("ADDRESS", "STRUCT<STREET STRING, CITY STRING>")
    db.type("TAGS", "ARRAY<STRING>")

    def source(kind: str, name: str, columns: str, value: str = "JSON", more: str = "") -> None:
        schema = columns.replace(" PRIMARY KEY", " KEY")
        for name_, type_ in (
            ("ADDRESS ADDRESS", "ADDRESS STRUCT<`STREET` STRING, `CITY` STRING>"),
            ("TAGS TAGS", "TAGS ARRAY<STRING>"),
        ):
            schema = schema.replace(name_, type_)
        db.source(
            kind,
            name,
            columns,
            _quoted(schema),
            f"KAFKA_TOPIC='shop_{name.lower()}', KEY_FORMAT='KAFKA', PARTITIONS=1, "
            f"VALUE_FORMAT='{value}'{more}",
            value=value,
            unwrapped="false" in more,
        )

    source("STREAM", "ORDERS", "ID STRING KEY, CUSTOMER STRING, AMOUNT DOUBLE, ADDRESS ADDRESS")
    source("TABLE", "CUSTOMERS", "ID STRING PRIMARY KEY, NAME STRING, LEVEL STRING")
    source("STREAM", "SHIPMENTS", "`ID` STRING KEY, `ORDER` STRING, CARRIER STRING", "AVRO")
    source("STREAM", "PAYMENTS", "ID STRING KEY, PAID DOUBLE, NOTE STRING", "DELIMITED")
    source("TABLE", "ITEMS", "ITEM STRING PRIMARY KEY, NAME STRING, GRAMS INTEGER", "AVRO")
    source("TABLE", "PRICES", "ITEM STRING PRIMARY KEY, PRICE DOUBLE, CURRENCY STRING")
    source("STREAM", "NUMBERS", "V INTEGER")
    source("STREAM", "BARE", "V INTEGER", more=", WRAP_SINGLE_VALUE=false")
    source("STREAM", "CLICKS", "USR STRING KEY, PAGE STRING, MS INTEGER")
    source("STREAM", "TAGGED", "ID STRING KEY, TAGS TAGS, N INTEGER")
    source("STREAM", "SENSORS", "ID STRING KEY, TEMP DOUBLE, UNIT STRING", "PROTOBUF")
    source("STREAM", "ARCHIVE", "ID STRING KEY, AMOUNT DOUBLE, NOTE STRING")
    source("STREAM", "FORGOTTEN", "ID STRING KEY, A INTEGER, B INTEGER")
    db.drop("STREAM", "FORGOTTEN")


def _queries(db: RecordedKsqlDb) -> None:
    old = db.query(
        "STREAM",
        "BIG",
        "SELECT O.ID ID, O.AMOUNT AMOUNT FROM ORDERS O WHERE (O.AMOUNT > 1000)",
        "`ID` STRING KEY, `AMOUNT` DOUBLE",
    )
    db.query(
        "STREAM",
        "BIG",
        "SELECT O.ID ID, O.AMOUNT AMOUNT, O.ADDRESS->CITY CITY FROM ORDERS O "
        "WHERE (O.AMOUNT > 100)",
        "`ID` STRING KEY, `AMOUNT` DOUBLE, `CITY` STRING",
        replaces=old,
    )
    db.query(
        "STREAM",
        "BY_CUSTOMER",
        "SELECT * FROM BIG B PARTITION BY B.CITY",
        "`CITY` STRING KEY, `AMOUNT` DOUBLE, `ID` STRING",
    )
    db.query(
        "TABLE",
        "SPENDING",
        "SELECT O.CUSTOMER CUSTOMER, SUM(O.AMOUNT) TOTAL, COUNT(*) N FROM ORDERS O "
        "GROUP BY O.CUSTOMER",
        "`CUSTOMER` STRING KEY, `TOTAL` DOUBLE, `N` BIGINT",
    )
    db.query(
        "TABLE",
        "CLICKS_PER_MINUTE",
        "SELECT C.USR USR, COUNT(*) N FROM CLICKS C WINDOW TUMBLING ( SIZE 1 MINUTES ) "
        "GROUP BY C.USR",
        "`USR` STRING KEY, `N` BIGINT",
    )
    db.query(
        "STREAM",
        "SHIPPED",
        "SELECT O.ID ID, O.CUSTOMER CUSTOMER, S.CARRIER CARRIER FROM ORDERS O "
        "INNER JOIN SHIPMENTS S WITHIN 1 HOURS ON ((O.ID = S.ID))",
        "`ID` STRING KEY, `CUSTOMER` STRING, `CARRIER` STRING",
    )
    db.query(
        "STREAM",
        "NAMED",
        "SELECT P.ID ID, P.PAID PAID, C.NAME NAME FROM PAYMENTS P "
        "LEFT OUTER JOIN CUSTOMERS C ON ((P.ID = C.ID))",
        "`ID` STRING KEY, `PAID` DOUBLE, `NAME` STRING",
    )
    db.query(
        "TABLE",
        "PRICED",
        "SELECT I.ITEM ITEM, I.NAME NAME, P.PRICE PRICE FROM ITEMS I "
        "INNER JOIN PRICES P ON ((I.ITEM = P.ITEM))",
        "`ITEM` STRING KEY, `NAME` STRING, `PRICE` DOUBLE",
        "KAFKA_TOPIC='PRICED', VALUE_FORMAT='JSON'",
    )
    db.query(
        "STREAM",
        "TAG",
        "SELECT T.ID ID, EXPLODE(T.TAGS) TAG, T.N N FROM TAGGED T",
        "`ID` STRING KEY, `TAG` STRING, `N` INTEGER",
    )
    # What its source has unwrapped, ksqlDB wraps again.
    db.query("STREAM", "DOUBLED", "SELECT (B.V * 2) V FROM BARE B", "`V` INTEGER")
    db.query(
        "STREAM",
        "HOT",
        "SELECT * FROM SENSORS S WHERE (S.TEMP > 30)",
        "`ID` STRING KEY, `TEMP` DOUBLE, `UNIT` STRING",
        value="PROTOBUF",
    )
    db.insert("ARCHIVE", "SELECT O.ID ID, O.AMOUNT AMOUNT, 'order' NOTE FROM ORDERS O")
    db.insert("ARCHIVE", "SELECT P.ID ID, P.PAID AMOUNT, P.NOTE NOTE FROM PAYMENTS P")
    db.terminate(db.insert("ARCHIVE", "SELECT O.ID ID, O.AMOUNT AMOUNT, 'no' NOTE FROM ORDERS O"))


def _quoted(columns: str) -> str:
    """Columns with their names in backquotes, as ksqlDB's schemas have them."""
    parts = [part.split(" ", 1) for part in columns.replace("`", "").split(", ")]
    if any("STRUCT<" in type_ for _, type_ in parts):  # its fields are in backquotes already
        return (
            "`ID` STRING KEY, `CUSTOMER` STRING, `AMOUNT` DOUBLE, "
            "`ADDRESS` STRUCT<`STREET` STRING, `CITY` STRING>"
        )
    return ", ".join(f"`{name}` {type_}" for name, type_ in parts)


# ---------------------------------------------------------------------------------- records


def write_records(kafka: KafkaConnection, register: Register) -> None:
    """What the shop's sources hold, and what ksqlDB's queries made of it."""
    records = [*_inputs(register), *_outputs(register)]
    admin = TopicAdmin(kafka)
    for topic in dict.fromkeys(r.topic for r in records):
        policy = "compact" if topic in (*TABLES, "shop_customers", "shop_items") else "delete"
        admin.ensure(TopicSpec(topic, 1, 1, {"cleanup.policy": policy}))
    for topic in ("shop_numbers", "shop_forgotten"):
        admin.ensure(TopicSpec(topic, 1))
    with RecordWriter(kafka) as writer:
        writer.write_all(records)


def _json(topic: str, key: str | None, value: object, at: int) -> NewRecord:
    data = json.dumps(value).encode()
    return NewRecord(topic, None if key is None else key.encode(), data, timestamp=T + at)


def _inputs(register: Register) -> list[NewRecord]:
    def order(id_: str, customer: str, amount: float, city: str, at: int) -> NewRecord:
        address = {"STREET": "Main", "CITY": city}
        value = {"CUSTOMER": customer, "AMOUNT": amount, "ADDRESS": address}
        return _json("shop_orders", id_, value, at)

    avro = {topic: register(f"{topic}-value", _avro_schema(topic), "AVRO") for topic in _AVRO}
    proto = register("shop_sensors-value", _PROTO, "PROTOBUF")

    def shipment(id_: str, carrier: str, at: int) -> NewRecord:
        value = _avro(avro["shop_shipments"], "o-" + id_, carrier)
        return NewRecord("shop_shipments", id_.encode(), value, timestamp=T + at)

    def item(id_: str, name: str, size: int, at: int) -> NewRecord:
        value = _avro(avro["shop_items"], name, size)
        return NewRecord("shop_items", id_.encode(), value, timestamp=T + at)

    def payment(id_: str, text: str, at: int) -> NewRecord:
        return NewRecord("shop_payments", id_.encode(), text.encode(), timestamp=T + at)

    def sensor(id_: str, temp: float, at: int) -> NewRecord:
        value = _protobuf(proto, temp, "C")
        return NewRecord("shop_sensors", id_.encode(), value, timestamp=T + at)

    return [
        order("1", "ada", 120.0, "Ulm", 0),
        order("2", "grace", 9.5, "Bonn", 1000),
        order("3", "ada", 310.25, "Bonn", 2000),
        _json("shop_customers", "1", {"NAME": "Ada", "LEVEL": "gold"}, 0),
        _json("shop_customers", "2", {"NAME": "Grace", "LEVEL": "iron"}, 0),
        shipment("1", "swift", 10_000),
        shipment("3", "gull", 2 * 3_600_000),  # too late
        shipment("2", "gull", 20_000),
        payment("1", "120.0,cash", 30_000),
        payment("9", "1.5,card", 31_000),
        item("a", "Apple", 1, 0),
        item("b", "Bread", 2, 0),
        item("a", "Red apple", 1, 5),
        _json("shop_prices", "a", {"PRICE": 0.5, "CURRENCY": "EUR"}, 1),
        _json("shop_prices", "b", {"PRICE": 2.0, "CURRENCY": "EUR"}, 2),
        _json("shop_bare", None, 3, 0),
        _json("shop_bare", None, 4, 1),
        _json("shop_clicks", "u", {"PAGE": "x", "MS": 1}, 0),
        _json("shop_clicks", "v", {"PAGE": "x", "MS": 1}, 1000),
        _json("shop_clicks", "u", {"PAGE": "y", "MS": 1}, 2000),
        _json("shop_clicks", "u", {"PAGE": "y", "MS": 1}, MINUTE),
        _json("shop_tagged", "t", {"TAGS": ["red", "blue"], "N": 1}, 0),
        sensor("s", 31.5, 0),
        sensor("t", 20.0, 1),
    ]


def _outputs(register: Register) -> list[NewRecord]:
    proto = register("HOT-value", _PROTO, "PROTOBUF")

    def window(user: str, start: int, count: int, at: int) -> NewRecord:
        key = user.encode() + struct.pack(">q", T + start)
        return NewRecord("CLICKS_PER_MINUTE", key, b'{"N":%d}' % count, timestamp=T + at)

    return [
        _json("BIG", "1", {"AMOUNT": 120.0, "CITY": "Ulm"}, 0),
        _json("BIG", "3", {"AMOUNT": 310.25, "CITY": "Bonn"}, 2000),
        _json("BY_CUSTOMER", "Ulm", {"AMOUNT": 120.0, "ID": "1"}, 0),
        _json("BY_CUSTOMER", "Bonn", {"AMOUNT": 310.25, "ID": "3"}, 2000),
        _json("SPENDING", "ada", {"TOTAL": 120.0, "N": 1}, 0),
        _json("SPENDING", "grace", {"TOTAL": 9.5, "N": 1}, 1000),
        _json("SPENDING", "ada", {"TOTAL": 430.25, "N": 2}, 2000),
        window("u", 0, 1, 0),
        window("v", 0, 1, 1000),
        window("u", 0, 2, 2000),
        window("u", MINUTE, 1, MINUTE),
        _json("SHIPPED", "1", {"CUSTOMER": "ada", "CARRIER": "swift"}, 10_000),
        _json("SHIPPED", "2", {"CUSTOMER": "grace", "CARRIER": "gull"}, 20_000),
        NewRecord("NAMED", b"1", b"120.0,Ada", timestamp=T + 30_000),
        NewRecord("NAMED", b"9", b"1.5,", timestamp=T + 31_000),
        _json("PRICED", "a", {"NAME": "Red apple", "PRICE": 0.5}, 5),
        _json("PRICED", "b", {"NAME": "Bread", "PRICE": 2.0}, 2),
        _json("TAG", "t", {"TAG": "red", "N": 1}, 0),
        _json("TAG", "t", {"TAG": "blue", "N": 1}, 0),
        _json("DOUBLED", None, {"V": 6}, 0),
        _json("DOUBLED", None, {"V": 8}, 1),
        NewRecord("HOT", b"s", _protobuf(proto, 31.5, "C"), timestamp=T),
        _json("shop_archive", "1", {"AMOUNT": 120.0, "NOTE": "order"}, 0),
        _json("shop_archive", "2", {"AMOUNT": 9.5, "NOTE": "order"}, 1000),
        _json("shop_archive", "3", {"AMOUNT": 310.25, "NOTE": "order"}, 2000),
        _json("shop_archive", "1", {"AMOUNT": 120.0, "NOTE": "cash"}, 30_000),
        _json("shop_archive", "9", {"AMOUNT": 1.5, "NOTE": "card"}, 31_000),
    ]


# ---------------------------------------------------------------------------------- formats


def _avro_schema(topic: str) -> str:
    fields = [{"name": n, "type": ["null", t], "default": None} for n, t in _AVRO[topic]]
    return json.dumps({"type": "record", "name": "ConnectDefault1", "fields": fields})


def _framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + struct.pack(">i", schema_id) + payload


def _avro(schema_id: int, *values: str | int) -> bytes:
    return _framed(schema_id, b"".join(b"\x02" + _avro_value(v) for v in values))


def _avro_value(value: str | int) -> bytes:
    if isinstance(value, int):
        return bytes([value * 2])
    return bytes([len(value) * 2]) + value.encode()


def _protobuf(schema_id: int, temp: float, unit: str) -> bytes:
    message = b"\x09" + struct.pack("<d", temp) + b"\x12" + bytes([len(unit)]) + unit.encode()
    return _framed(schema_id, b"\0" + message)
