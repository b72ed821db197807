"""Compatibility of Protobuf schemas, by the rules of Confluent's registry."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from headrace.registry.compatibility.incompatibility import Incompatibility

# Scalars that are the same on the wire.
WIRE_GROUPS = (
    {"int32", "uint32", "int64", "uint64", "bool"},
    {"sint32", "sint64"},
    {"string", "bytes"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
)
NAMED = (FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_ENUM)


def incompatibilities(
    reader: FileDescriptorProto, writer: FileDescriptorProto
) -> list[Incompatibility]:
    """Why `reader` cannot read what `writer` wrote; nothing if it can."""
    mine = {message.name: message for message in reader.message_type}
    found: list[Incompatibility] = []
    for message in writer.message_type:
        path = f"#/{message.name}"
        if message.name in mine:
            found += _message(mine[message.name], message, path, reader.package, writer.package)
        else:
            found.append(Incompatibility("MESSAGE_REMOVED", path))
    return found


def _message(
    reader: DescriptorProto, writer: DescriptorProto, path: str, mine: str, theirs: str
) -> list[Incompatibility]:
    """Compares two messages of files in the packages `mine` and `theirs`."""
    found: list[Incompatibility] = []
    read = {field.number: field for field in reader.field}
    written = {field.number: field for field in writer.field}
    for number, field in written.items():
        place = f"{path}/{number}"
        if number in read:
            found += _field(read[number], field, place, mine, theirs)
        elif field.label == FieldDescriptorProto.LABEL_REQUIRED:
            found.append(Incompatibility("REQUIRED_FIELD_REMOVED", place))
        elif _in_oneof(field):
            found.append(Incompatibility("ONEOF_FIELD_REMOVED", place))
    for number, field in read.items():
        if number not in written and field.label == FieldDescriptorProto.LABEL_REQUIRED:
            found.append(Incompatibility("REQUIRED_FIELD_ADDED", f"{path}/{number}"))
    found += _moved_to_oneof(read, written, reader, path)
    nested = {n.name: n for n in reader.nested_type}
    for inner in writer.nested_type:
        place = f"{path}/{inner.name}"
        if inner.name in nested:
            found += _message(nested[inner.name], inner, place, mine, theirs)
        elif not inner.options.map_entry:
            found.append(Incompatibility("MESSAGE_REMOVED", place))
    return found


def _field(
    reader: FieldDescriptorProto, writer: FieldDescriptorProto, path: str, mine: str, theirs: str
) -> list[Incompatibility]:
    repeated = FieldDescriptorProto.LABEL_REPEATED
    if (reader.label == repeated) != (writer.label == repeated) and not _packs(reader, writer):
        return [Incompatibility("FIELD_NUMERIC_LABEL_CHANGED", path)]
    if (reader.type in NAMED or writer.type in NAMED) and reader.type != writer.type:
        kinds = {_scalar(reader), _scalar(writer)}
        integers = WIRE_GROUPS[0] | {"enum"}
        return [] if kinds <= integers else [Incompatibility("FIELD_KIND_CHANGED", path)]
    if reader.type in NAMED:
        # A file that moved to another package took its own types along.
        same = _relative(reader.type_name, mine) == _relative(writer.type_name, theirs)
        return [] if same else [Incompatibility("FIELD_NAMED_TYPE_CHANGED", path)]
    kinds = {_scalar(reader), _scalar(writer)}
    if len(kinds) == 1 or any(kinds <= group for group in WIRE_GROUPS):
        return []
    return [Incompatibility("FIELD_SCALAR_KIND_CHANGED", path)]


def _packs(reader: FieldDescriptorProto, writer: FieldDescriptorProto) -> bool:
    """Text and messages may become repeated or single: the last one wins, or the only one."""
    lengthy = {
        FieldDescriptorProto.TYPE_STRING,
        FieldDescriptorProto.TYPE_BYTES,
        FieldDescriptorProto.TYPE_MESSAGE,
    }
    return reader.type in lengthy and writer.type in lengthy


def _moved_to_oneof(
    read: dict[int, FieldDescriptorProto],
    written: dict[int, FieldDescriptorProto],
    reader: DescriptorProto,
    path: str,
) -> list[Incompatibility]:
    found = []
    for index, oneof in enumerate(reader.oneof_decl):
        moved = [
            number
            for number, field in read.items()
            if _in_oneof(field)
            and field.oneof_index == index
            and number in written
            and not _in_oneof(written[number])
        ]
        if len(moved) > 1:
            found.append(Incompatibility("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{path}/{oneof.name}"))
    return found


def _in_oneof(field: FieldDescriptorProto) -> bool:
    return field.HasField("oneof_index") and not field.proto3_optional


def _relative(name: str, package: str) -> str:
    return name.removeprefix(f".{package}.") if package else name.removeprefix(".")


def _scalar(field: FieldDescriptorProto) -> str:
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
