"""Formats: how columns become bytes and back; one module each, two faces, one table."""

from __future__ import annotations

from headrace.formats.avro import AvroFormat
from headrace.formats.base import Format
from headrace.formats.delimited import DelimitedFormat
from headrace.formats.json import JsonFormat
from headrace.formats.json_sr import JsonSrFormat
from headrace.formats.kafka import KafkaFormat
from headrace.formats.none import NoneFormat
from headrace.formats.protobuf import ProtobufFormat, ProtobufNoSrFormat
from headrace.model.errors import StatementError

FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        AvroFormat(),
        DelimitedFormat(),
        JsonFormat(),
        JsonSrFormat(),
        KafkaFormat(),
        NoneFormat(),
        ProtobufFormat(),
        ProtobufNoSrFormat(),
    )
}


def format_named(name: str) -> Format:
    """The format of that name, in any case."""
    found = FORMATS.get(name.upper())
    if found is None:
        raise StatementError(f"Unknown format: {name.upper()}")
    return found
