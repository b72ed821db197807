"""The schema languages: parsing and compatibility of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.registry.compatibility import avro as avro_compatibility
from headrace.registry.compatibility import json as json_compatibility
from headrace.registry.compatibility import protobuf as protobuf_compatibility
from headrace.schemas import SchemaType, avro, json_schema, protobuf
from headrace.schemas.protobuf_text import proto_text


class SchemaSyntaxError(ValueError):
    """A text that is no schema in its language; says what is wrong."""


class ParsedSchema(Protocol):
    """A schema that its language has understood."""

    @property
    def text(self) -> str:
        """The text to keep: the same for schemas that differ in layout only."""

    @property
    def normal(self) -> str:
        """The text with everything that has no meaning brought into one order."""

    def serialized(self) -> str:
        """The text in the language's exchange form (`format=serialized`)."""

    def incompatibilities(
        self, writer: ParsedSchema, reader_age: str, writer_age: str
    ) -> list[str]:
        """Why data of `writer` cannot be read; ages are "new" and "old", for the messages."""


@dataclass(frozen=True)
class AvroSchema:
    root: avro.AvroType
    names: dict[str, avro.Named]
    imported: dict[str, avro.Named]

    @property
    def text(self) -> str:
        return avro.canonical(self.root, self.imported)

    @property
    def normal(self) -> str:
        return avro.normal(self.root, self.imported)

    def serialized(self) -> str:
        return self.text

    def incompatibilities(
        self, writer: ParsedSchema, reader_age: str, writer_age: str
    ) -> list[str]:
        assert isinstance(writer, AvroSchema)
        found = avro_compatibility.incompatibilities(self.root, writer.root)
        return [incompatibility.describe(reader_age, writer_age) for incompatibility in found]


@dataclass(frozen=True)
class JsonSchema:
    declaration: json_schema.Declaration

    @property
    def text(self) -> str:
        return json.dumps(self.declaration, separators=(",", ":"), ensure_ascii=False)

    @property
    def normal(self) -> str:
        return json.dumps(
            self.declaration, separators=(",", ":"), ensure_ascii=False, sort_keys=True
        )

    def serialized(self) -> str:
        return self.text

    def incompatibilities(
        self, writer: ParsedSchema, reader_age: str, writer_age: str
    ) -> list[str]:
        assert isinstance(writer, JsonSchema)
        found = json_compatibility.incompatibilities(self.declaration, writer.declaration)
        return [incompatibility.describe(reader_age, writer_age) for incompatibility in found]


@dataclass(frozen=True)
class ProtobufSchema:
    file: protobuf.File

    @property
    def text(self) -> str:
        return self.file.text

    @property
    def normal(self) -> str:
        return proto_text(self.file.descriptor)

    def serialized(self) -> str:
        return self.file.serialized

    def incompatibilities(
        self, writer: ParsedSchema, reader_age: str, writer_age: str
    ) -> list[str]:
        assert isinstance(writer, ProtobufSchema)
        found = protobuf_compatibility.incompatibilities(
            self.file.descriptor, writer.file.descriptor
        )
        return [incompatibility.describe(reader_age, writer_age) for incompatibility in found]


# A schema that is referred to: the name it goes by, and its text.
Import = tuple[str, str]


def _parse_avro(text: str, imports: Sequence[Import]) -> AvroSchema:
    known: dict[str, avro.Named] = {}
    try:
        for _, imported in imports:
            known = avro.parse(imported, known)[1]
        root, names = avro.parse(text, known)
    except avro.AvroSchemaError as failure:
        raise SchemaSyntaxError(str(failure)) from failure
    return AvroSchema(root, names, known)


def _parse_json(text: str, imports: Sequence[Import]) -> JsonSchema:
    try:
        return JsonSchema(json_schema.parse(text))
    except ValueError as failure:
        raise SchemaSyntaxError(str(failure)) from failure


def _parse_protobuf(text: str, imports: Sequence[Import]) -> ProtobufSchema:
    try:
        return ProtobufSchema(protobuf.parse(text, dict(imports)))
    except protobuf.ProtoSyntaxError as failure:
        raise SchemaSyntaxError(str(failure)) from failure


LANGUAGES: dict[SchemaType, Callable[[str, Sequence[Import]], ParsedSchema]] = {
    "JSON": _parse_json,
    "PROTOBUF": _parse_protobuf,
    "AVRO": _parse_avro,
}
