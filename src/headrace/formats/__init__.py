"""Formats: one module each, with two codecs between columns and bytes."""

from __future__ import annotations

from headrace.formats.avro.format import AvroFormat
from headrace.formats.base import Format, RegistryFormat
from headrace.formats.delimited import DelimitedFormat
from headrace.formats.json.format import JsonFormat
from headrace.formats.json.registered import JsonSrFormat
from headrace.formats.kafka import KafkaFormat
from headrace.formats.none import NoneFormat
from headrace.formats.protobuf.format import ProtobufFormat, ProtobufNoSrFormat
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
REGISTRY_FORMATS = tuple(f for f in FORMATS.values() if isinstance(f, RegistryFormat))


def format_named(name: str) -> Format:
    """The format of that name, in any case."""
    found = FORMATS.get(name.upper())
    if found is None:
        raise StatementError(f"Unknown format: {name.upper()}")
    return found
