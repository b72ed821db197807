"""A Protobuf descriptor as a `.proto` text."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)


def proto_text(file: FileDescriptorProto) -> str:
    return "\n".join(_file(file)) + "\n"


def _file(file: FileDescriptorProto) -> Iterator[str]:
    syntax = file.syntax or "proto2"
    yield f'syntax = "{syntax}";'
    if file.package:
        yield f"package {file.package};"
    yield ""
    for name in file.dependency:
        yield f'import "{name}";'
    if file.options.java_package:
        yield f'option java_package = "{file.options.java_package}";'
    if file.options.java_outer_classname:
        yield f'option java_outer_classname = "{file.options.java_outer_classname}";'
    if file.options.java_multiple_files:
        yield "option java_multiple_files = true;"
    for message in file.message_type:
        yield ""
        yield from _message(message, "", syntax)
    for enum in file.enum_type:
        yield ""
        yield from _enum(enum, "")


def _message(message: DescriptorProto, margin: str, syntax: str) -> Iterator[str]:
    entries = {n.name: n for n in message.nested_type if n.options.map_entry}
    yield f"{margin}message {message.name} {{"
    inner = margin + "  "
    for field in message.field:
        if not field.HasField("oneof_index") or field.proto3_optional:
            yield inner + _field(field, entries, syntax)
    for index, oneof in enumerate(message.oneof_decl):
        members = [
            f
            for f in message.field
            if f.HasField("oneof_index") and f.oneof_index == index and not f.proto3_optional
        ]
        if members:
            yield f"{inner}oneof {oneof.name} {{"
            for field in members:
                yield f"{inner}  {_type(field)} {field.name} = {field.number};"
            yield inner + "}"
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from _message(nested, inner, syntax)
    for enum in message.enum_type:
        yield from _enum(enum, inner)
    yield margin + "}"


def _field(field: FieldDescriptorProto, entries: dict[str, DescriptorProto], syntax: str) -> str:
    entry = entries.get(field.type_name.rpartition(".")[2])
    if entry is not None and field.label == FieldDescriptorProto.LABEL_REPEATED:
        key, value = (_type(part) for part in entry.field)
        return f"map<{key}, {value}> {field.name} = {field.number};"
    label = {
        FieldDescriptorProto.LABEL_REPEATED: "repeated ",
        FieldDescriptorProto.LABEL_REQUIRED: "required ",
    }.get(field.label, "optional " if field.proto3_optional or syntax == "proto2" else "")
    return f"{label}{_type(field)} {field.name} = {field.number};"


def _type(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return field.type_name
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _enum(enum: EnumDescriptorProto, margin: str) -> Iterator[str]:
    yield f"{margin}enum {enum.name} {{"
    if enum.options.allow_alias:
        yield f"{margin}  option allow_alias = true;"
    for value in enum.value:
        yield f"{margin}  {value.name} = {value.number};"
    yield margin + "}"
