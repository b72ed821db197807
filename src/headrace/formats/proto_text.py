"""Protobuf schemas in their own language: texts to descriptors.

Only what describes messages is kept: services, extensions and most options are passed over. Of the
options, those of Confluent's `field_meta` are kept, because they hold a decimal's precision.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor

_Field = descriptor_pb2.FieldDescriptorProto
_File = descriptor_pb2.FileDescriptorProto
_Message = descriptor_pb2.DescriptorProto

# What a schema may import without the registry knowing it.
_GOOGLE = {
    module.DESCRIPTOR.name: module.DESCRIPTOR.serialized_pb
    for module in (
        any_pb2,
        api_pb2,
        descriptor_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        source_context_pb2,
        struct_pb2,
        timestamp_pb2,
        type_pb2,
        wrappers_pb2,
    )
}
_TEXTS = {
    "google/type/date.proto": """
        syntax = "proto3"; package google.type;
        message Date { int32 year = 1; int32 month = 2; int32 day = 3; }""",
    "google/type/timeofday.proto": """
        syntax = "proto3"; package google.type;
        message TimeOfDay {
          int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4;
        }""",
    "confluent/type/decimal.proto": """
        syntax = "proto3"; package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }""",
    "confluent/meta.proto": """
        syntax = "proto3"; package confluent;
        message Meta {
          string doc = 1; map<string, string> params = 2; repeated string tags = 3;
        }""",
}

_SCALARS = {
    name: getattr(_Field, f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "bool", "string", "bytes"),
        *("int32", "uint32", "sint32", "fixed32", "sfixed32"),
        *("int64", "uint64", "sint64", "fixed64", "sfixed64"),
    )
}
_LABELS = {
    "optional": _Field.LABEL_OPTIONAL,
    "required": _Field.LABEL_REQUIRED,
    "repeated": _Field.LABEL_REPEATED,
}
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<word>[\w.+-]+)
    |(?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_PAIR = re.compile(r"(key|value)\s*:\s*[\"']([^\"']*)[\"']")


@dataclass
class ProtoFile:
    """A parsed file: its descriptor, and the `field_meta` parameters by field."""

    proto: _File
    params: dict[str, dict[str, str]] = field(default_factory=dict)  # by full name of the field
    pool: descriptor_pool.DescriptorPool = field(
        default_factory=descriptor_pool.DescriptorPool, repr=False
    )

    def message(self, name: str | None = None) -> Descriptor:
        """The message of that full name; the first one of the file if none is named."""
        if name is None:
            if not self.proto.message_type:
                raise ValueError("The schema has no message")
            package = self.proto.package
            first = self.proto.message_type[0].name
            name = f"{package}.{first}" if package else first
        try:
            return self.pool.FindMessageTypeByName(name)
        except KeyError as e:
            raise ValueError(f"There is no message {name} in the schema") from e


def parse(text: str, references: Mapping[str, str]) -> ProtoFile:
    """The file with all that it imports; ValueError where that does not make sense."""
    result = ProtoFile(_File())
    loaded: set[str] = set()
    result.proto = _load("schema.proto", text, references, result, loaded)
    return result


def _load(
    name: str, text: str, references: Mapping[str, str], into: ProtoFile, loaded: set[str]
) -> _File:
    loaded.add(name)
    parser = _Parser(name, text)
    proto = parser.file()
    into.params |= parser.params
    for imported in list(proto.dependency):
        if imported not in loaded:
            _load_import(imported, references, into, loaded)
    try:
        into.pool.Add(proto)
        into.pool.FindFileByName(name)
    except (TypeError, KeyError) as e:
        raise ValueError(f"Invalid protobuf schema: {e}") from e
    return proto


def _load_import(
    name: str, references: Mapping[str, str], into: ProtoFile, loaded: set[str]
) -> None:
    if name in references:
        _load(name, references[name], references, into, loaded)
    elif name in _TEXTS:
        _load(name, _TEXTS[name], references, into, loaded)
    elif name in _GOOGLE:
        loaded.add(name)
        proto = _File.FromString(_GOOGLE[name])
        for imported in proto.dependency:
            if imported not in loaded:
                _load_import(imported, references, into, loaded)
        into.pool.Add(proto)
    else:
        raise ValueError(f"Invalid protobuf schema: {name} is imported, but not known")


class _Parser:
    """Recursive descent over the tokens of one file."""

    def __init__(self, name: str, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._next = 0
        self._file = _File(name=name)
        self.params: dict[str, dict[str, str]] = {}

    def file(self) -> _File:
        self._file.syntax = "proto2"
        while not self._at_end():
            word = self._take()
            match word:
                case "syntax" | "edition":
                    self._expect("=")
                    self._file.syntax = _unquoted(self._take())
                    self._expect(";")
                case "package":
                    self._file.package = self._take()
                    self._expect(";")
                case "import":
                    imported = self._take()
                    if imported in ("public", "weak"):
                        imported = self._take()
                    self._file.dependency.append(_unquoted(imported))
                    self._expect(";")
                case "message":
                    self._message(self._file.message_type.add(), self._file.package)
                case "enum":
                    self._enum(self._file.enum_type.add())
                case ";":
                    pass
                case _:
                    self._skip()
        if self._file.syntax == "proto2":
            self._file.ClearField("syntax")
        return self._file

    def _message(self, message: _Message, scope: str) -> None:
        message.name = self._take()
        full = f"{scope}.{message.name}" if scope else message.name
        self._expect("{")
        while (word := self._take()) != "}":
            match word:
                case "message":
                    self._message(message.nested_type.add(), full)
                case "enum":
                    self._enum(message.enum_type.add())
                case "oneof":
                    self._oneof(message, full)
                case "map":
                    self._map(message, full)
                case "option" | "reserved" | "extensions" | "extend" | "group":
                    self._skip()
                case ";":
                    pass
                case _:
                    self._field(message, full, word)
        # Fields marked optional have a oneof of their own, after all others.
        for f in message.field:
            if f.proto3_optional:
                f.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add().name = f"_{f.name}"

    def _field(self, message: _Message, full: str, word: str) -> _Field:
        f = message.field.add(label=_Field.LABEL_OPTIONAL)
        if word in _LABELS:
            f.label = _LABELS[word]
            f.proto3_optional = word == "optional" and self._file.syntax == "proto3"
            word = self._take()
        _set_type(f, word)
        f.name = self._take()
        self._expect("=")
        f.number = self._integer()
        self._field_options(f"{full}.{f.name}")
        return f

    def _map(self, message: _Message, full: str) -> None:
        self._expect("<")
        key = self._take()
        self._expect(",")
        value = self._take()
        self._expect(">")
        name = self._take()
        self._expect("=")
        f = message.field.add(name=name, number=self._integer(), label=_Field.LABEL_REPEATED)
        self._field_options(f"{full}.{name}")
        entry = message.nested_type.add(name=_camel(name) + "Entry")
        entry.options.map_entry = True
        for i, (part, type_) in enumerate((("key", key), ("value", value))):
            inner = entry.field.add(name=part, number=i + 1, label=_Field.LABEL_OPTIONAL)
            _set_type(inner, type_)
        f.type_name = entry.name

    def _oneof(self, message: _Message, full: str) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add().name = self._take()
        self._expect("{")
        while (word := self._take()) != "}":
            if word == "option":
                self._skip()
            elif word != ";":
                self._field(message, full, word).oneof_index = index

    def _enum(self, enum: descriptor_pb2.EnumDescriptorProto) -> None:
        enum.name = self._take()
        self._expect("{")
        while (word := self._take()) != "}":
            if word == "option":
                self._expect("allow_alias")
                self._expect("=")
                enum.options.allow_alias = self._take() == "true"
                self._expect(";")
            elif word == "reserved":
                self._skip()
            elif word != ";":
                self._expect("=")
                enum.value.add(name=word, number=self._integer())
                self._field_options("")

    def _field_options(self, name: str) -> None:
        """Options in brackets; of `field_meta` the parameters are kept."""
        if self._take() == ";":
            return
        start, depth = self._next, 1
        while depth:
            word = self._take()
            depth += {"[": 1, "]": -1}.get(word, 0)
        text = " ".join(self._tokens[start : self._next - 1])
        self._expect(";")
        if "confluent.field_meta" in text:
            pairs = [m for m in _PAIR.findall(text) if m]
            keys = [v for k, v in pairs if k == "key"]
            values = [v for k, v in pairs if k == "value"]
            self.params[name] = dict(zip(keys, values, strict=False))

    def _skip(self) -> None:
        """To the end of a statement that says nothing of messages."""
        depth = 0
        while True:
            word = self._take()
            if word == "{":
                depth += 1
            elif word == "}":
                depth -= 1
                if depth == 0:
                    return
            elif word == ";" and depth == 0:
                return

    def _take(self) -> str:
        if self._at_end():
            raise ValueError("Invalid protobuf schema: unexpected end")
        self._next += 1
        return self._tokens[self._next - 1]

    def _at_end(self) -> bool:
        return self._next >= len(self._tokens)

    def _expect(self, wanted: str) -> None:
        found = self._take()
        if found != wanted:
            raise ValueError(f"Invalid protobuf schema: expected '{wanted}', found '{found}'")

    def _integer(self) -> int:
        return int(self._take(), 0)


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup is not None:
            yield match[0]


def _unquoted(text: str) -> str:
    return text.strip("\"'")


def _set_type(f: _Field, word: str) -> None:
    if word in _SCALARS:
        f.type = _SCALARS[word]
    else:
        f.type_name = word  # the pool finds out whether that is a message or an enum


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
