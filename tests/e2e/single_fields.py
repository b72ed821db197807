"""KLIP-3 in small: the bytes that keys and values are, from the proposal's words alone.

Nothing here asks the code under test: JSON is written by Python's own library, Avro by the few
lines below, and what a record's schema says is asked of the registry over HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx

from headrace.kafka.records import (
    NewRecord,
    Record,
    RecordReader,
    RecordWriter,
)
from scene import Scene

AVRO_TYPES = {"INT": "int", "BIGINT": "long", "STRING": "string"}
SETTINGS = {
    "key": "ksql__persistence__wrap__single__keys",
    "value": "ksql__persistence__wrap__single__values",
}


@dataclass(frozen=True)
class Field:
    """A column of a row with its value, as it is to be found in a record."""

    name: str
    type: str
    value: int | str


Fields = Sequence[Field]


@dataclass(frozen=True)
class Avro:
    """A record of Avro without what says nothing of its form: ids and names of schemas."""

    schema: object
    payload: bytes


Written = bytes | Avro | None


def is_record(fields: Fields, wrap: bool) -> bool:
    """Many fields always are one; a single field is if it is wrapped."""
    return len(fields) > 1 or wrap


def written(format_: str, fields: Fields, wrap: bool) -> Written:
    """What lies in a topic for these fields of a key or a value."""
    if not fields:
        return None
    record = is_record(fields, wrap)
    if format_ == "JSON":
        row = {f.name: f.value for f in fields}
        return json.dumps(row if record else fields[0].value, separators=(",", ":")).encode()
    return Avro(avro_schema(fields, wrap), avro_payload(fields, wrap))


# ---------------------------------------------------------------------------------------- Avro


def avro_schema(fields: Fields, wrap: bool) -> object:
    """As `plain` shows it: a type's name, or what a record's fields are."""
    if not is_record(fields, wrap):
        return AVRO_TYPES[fields[0].type]
    return {"record": [[f.name, ["null", AVRO_TYPES[f.type]]] for f in fields]}


def avro_payload(fields: Fields, wrap: bool) -> bytes:
    if not is_record(fields, wrap):
        return avro_value(fields[0].value)
    # Fields may be null: each is preceded by the number of the union's branch, which is 1.
    return b"".join(avro_number(1) + avro_value(f.value) for f in fields)


def avro_value(value: int | str) -> bytes:
    if isinstance(value, int):
        return avro_number(value)
    data = value.encode()
    return avro_number(len(data)) + data


def avro_number(number: int) -> bytes:
    """Zigzag, then seven bits a byte, the last ones first."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def plain(schema: Any) -> Any:
    """A schema without names, defaults and notes for Connect."""
    match schema:
        case list():
            return [plain(branch) for branch in schema]
        case {"type": "record", "fields": fields}:
            return {"record": [[f["name"], plain(f["type"])] for f in fields]}
        case {"type": "array", "items": items}:
            return {"array": plain(items)}
        case {"type": "map", "values": values}:
            return {"map": plain(values)}
        case {"type": str(name)}:
            kept = ("logicalType", "precision", "scale")
            said = {k: schema[k] for k in kept if k in schema}
            return {"type": name, **said} if said else name
    return schema


class Records:
    """Records written and read as bytes, with the registry's word on those of Avro."""

    def __init__(self, scene: Scene, registry: str) -> None:
        self.scene = scene
        self._registry = httpx.Client(base_url=registry, timeout=30)
        self._writer = RecordWriter(scene.kafka)
        self._reader = RecordReader(scene.kafka)
        self.schema = cache(self._schema)

    def close(self) -> None:
        self._registry.close()
        self._writer.close()

    def write(self, topic: str, *records: tuple[bytes | None, bytes | None], at: int = 1) -> None:
        """Pairs of key and value, a second from one to the next."""
        self._writer.write_all(
            NewRecord(topic, key, value, timestamp=at + 1000 * i)
            for i, (key, value) in enumerate(records)
        )

    def encoder(self, format_: str, subject: str, fields: Fields, wrap: bool) -> Any:
        """What makes the bytes of such fields, as another program would write them."""
        if not fields:
            return lambda fields: None
        if format_ == "JSON":
            return lambda fields: written("JSON", fields, wrap)
        schema: Any = avro_schema(fields, wrap)
        if is_record(fields, wrap):
            named = [{"name": n, "type": t, "default": None} for n, t in schema["record"]]
            schema = {"type": "record", "name": "FromElsewhere", "fields": named}
        head = self.register(subject, schema)
        return lambda fields: head + avro_payload(fields, wrap)

    def register(self, subject: str, schema: object) -> bytes:
        """The five bytes that begin a record of the schema."""
        answer = self._registry.post(
            f"/subjects/{subject}/versions", json={"schema": json.dumps(schema)}
        )
        assert answer.status_code == 200, answer.text
        return b"\0" + int(answer.json()["id"]).to_bytes(4, "big")

    def registered(self, subject: str) -> Any:
        """The latest schema of a subject."""
        answer = self._registry.get(f"/subjects/{subject}/versions/latest")
        assert answer.status_code == 200, answer.text
        return json.loads(answer.json()["schema"])

    def _schema(self, id_: int) -> Any:
        answer = self._registry.get(f"/schemas/ids/{id_}")
        assert answer.status_code == 200, answer.text
        return plain(json.loads(answer.json()["schema"]))

    def seen(self, format_: str, data: bytes | None) -> Written:
        """Bytes of a topic as the model writes them."""
        if data is None or format_ != "AVRO":
            return data
        assert data[0] == 0, data
        return Avro(self.schema(int.from_bytes(data[1:5], "big")), data[5:])

    def now(self, topic: str) -> list[Record]:
        """What a topic holds at this moment."""
        return list(self._reader.read(topic))

    def read(self, topic: str, count: int, key: str, value: str) -> list[tuple[Written, Written]]:
        """A topic's records by the formats of their sides, in an order of their own."""
        found = self.scene.records(topic, count)
        return ordered((self.seen(key, r.key), self.seen(value, r.value)) for r in found)


def ordered(records: Any) -> list[tuple[Written, Written]]:
    return sorted(records, key=repr)
