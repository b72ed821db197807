"""Parsers and writers of Avro, Protobuf and JSON schemas."""

from typing import Literal

# The languages of schemas, by the names that registries give them.
SchemaType = Literal["AVRO", "JSON", "PROTOBUF"]
