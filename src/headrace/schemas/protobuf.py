"""Parses `.proto` texts into Protobuf file descriptors.

The only parser of the language here; why it is not Google's: docs/design/0006-schemas.md.
Custom options, services and extensions are read over: they do not change what is on the wire. Of
options, the parameters of Confluent's `field_meta` are kept, which hold a decimal's precision.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from headrace.schemas.protobuf_text import proto_text

TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[A-Za-z0-9_.+-]+)
    |(?P<mark>[{}()\[\]<>=;,:/])""",
    re.VERBOSE | re.DOTALL,
)
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TYPE_NAME = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")

SCALARS = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in FieldDescriptorProto.Type.items()
    if name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}
LABELS = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}

# Files that every registry knows without being told.
BUILT_IN = {
    "confluent/meta.proto": 'syntax = "proto3"; package confluent;'
    "message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }",
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type;'
    "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
    "google/type/date.proto": 'syntax = "proto3"; package google.type;'
    "message Date { int32 year = 1; int32 month = 2; int32 day = 3; }",
    "google/type/timeofday.proto": 'syntax = "proto3"; package google.type;'
    "message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }",
}


class ProtoSyntaxError(ValueError):
    """A text that is no `.proto` file; says what is wrong."""


# The parameters of `field_meta` options, by full name of the field.
Params = dict[str, dict[str, str]]


@dataclass(frozen=True)
class File:
    """A file: its text, what it says, and the files that it imports, those they need first."""

    text: str
    descriptor: FileDescriptorProto
    imported: tuple[FileDescriptorProto, ...]
    params: Params

    @property
    def serialized(self) -> str:
        return base64.b64encode(self.descriptor.SerializeToString(deterministic=True)).decode()

    def message(self, name: str | None = None) -> Descriptor:
        """The message of that full name; the first one of the file if none is named."""
        if name is None:
            if not self.descriptor.message_type:
                raise ValueError("The schema has no message")
            package = self.descriptor.package
            first = self.descriptor.message_type[0].name
            name = f"{package}.{first}" if package else first
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError as e:
            raise ValueError(f"There is no message {name} in the schema") from e

    @cached_property
    def _pool(self) -> DescriptorPool:
        """Everything that the file defines and imports, as Protobuf's own library checks it."""
        pool = DescriptorPool()
        for one in (*self.imported, self.descriptor):
            try:
                pool.Add(one)
                pool.FindFileByName(one.name)
            except (TypeError, KeyError, DecodeError) as e:
                raise ValueError(f"Invalid protobuf schema: {e}") from e
        return pool


def parse(text: str, imports: Mapping[str, str]) -> File:
    """Reads a text, or a base64 descriptor; `imports` are the texts it may import, by name."""
    resolver = _Resolver(imports)
    descriptor = _decode(text)
    if descriptor is not None:
        with suppress(ProtoSyntaxError):  # the registry keeps it without its imports too
            resolver.read_imports(descriptor)
        return File(proto_text(descriptor), descriptor, tuple(resolver.files), resolver.params)
    try:
        parser = _Parser(text)
        descriptor = parser.file()
        resolver.resolve(descriptor)
    except RecursionError as failure:
        raise ProtoSyntaxError("nested too deeply") from failure
    return File(text.strip(), descriptor, tuple(resolver.files), resolver.params | parser.params)


def _decode(text: str) -> FileDescriptorProto | None:
    """The descriptor that the text is in base64, which is how some clients register theirs."""
    try:
        data = base64.b64decode(text.strip(), validate=True)
        return FileDescriptorProto.FromString(data) if data else None
    except (binascii.Error, DecodeError, ValueError):
        return None


class _Parser:
    """Recursive descent over the tokens of one file."""

    def __init__(self, text: str, name: str = "default") -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._name = name
        self._proto3 = False
        self.params: Params = {}

    # --- tokens

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise ProtoSyntaxError("unexpected end of file")
        self._at += 1
        return token

    def _take(self, *wanted: str) -> bool:
        if self._peek() in wanted:
            self._at += 1
            return True
        return False

    def _expect(self, wanted: str) -> None:
        token = self._next()
        if token != wanted:
            raise ProtoSyntaxError(f"expected '{wanted}' but found '{token}'")

    def _identifier(self) -> str:
        token = self._next()
        if not IDENTIFIER.fullmatch(token):
            raise ProtoSyntaxError(f"expected a name but found '{token}'")
        return token

    def _type_name(self) -> str:
        token = self._next()
        if not TYPE_NAME.fullmatch(token):
            raise ProtoSyntaxError(f"expected a type but found '{token}'")
        return token

    def _string(self) -> str:
        token = self._next()
        if token[0] not in "\"'":
            raise ProtoSyntaxError(f"expected a string but found '{token}'")
        return token[1:-1]

    def _integer(self) -> int:
        token = self._next()
        try:
            return int(token, 0)
        except ValueError as failure:
            raise ProtoSyntaxError(f"expected a number but found '{token}'") from failure

    # --- declarations

    def file(self) -> FileDescriptorProto:
        file = FileDescriptorProto(name=self._name)
        while self._peek():
            match self._next():
                case ";":
                    continue
                case "syntax" | "edition":
                    self._expect("=")
                    file.syntax = self._string()
                    self._proto3 = file.syntax == "proto3"
                    self._expect(";")
                case "package":
                    file.package = self._type_name()
                    self._expect(";")
                case "import":
                    if self._take("public"):
                        file.public_dependency.append(len(file.dependency))
                    self._take("weak")
                    file.dependency.append(self._string())
                    self._expect(";")
                case "option":
                    self._option(file)
                case "message":
                    self._message(file.message_type.add(), file.package)
                case "enum":
                    self._enum(file.enum_type.add())
                case "service" | "extend":
                    self._skip_block()
                case token:
                    raise ProtoSyntaxError(f"unexpected '{token}'")
        if file.syntax == "proto2":
            file.ClearField("syntax")
        return file

    def _option(self, file: FileDescriptorProto) -> None:
        name = self._next()
        if name == "java_package" and self._take("="):
            file.options.java_package = self._string()
        elif name == "java_outer_classname" and self._take("="):
            file.options.java_outer_classname = self._string()
        elif name == "java_multiple_files" and self._take("="):
            file.options.java_multiple_files = self._next() == "true"
        self._skip_statement()

    def _message(self, message: DescriptorProto, scope: str) -> None:
        message.name = self._identifier()
        full = f"{scope}.{message.name}" if scope else message.name
        self._expect("{")
        while not self._take("}"):
            match self._peek():
                case ";":
                    self._next()
                case "message":
                    self._next()
                    self._message(message.nested_type.add(), full)
                case "enum":
                    self._next()
                    self._enum(message.enum_type.add())
                case "oneof":
                    self._next()
                    self._oneof(message, full)
                case "option" | "reserved" | "extensions":
                    self._skip_statement()
                case "extend":
                    self._skip_block()
                case _:
                    self._field(message, full)
        numbers = [field.number for field in message.field]
        names = [field.name for field in message.field]
        if len(set(numbers)) < len(numbers) or len(set(names)) < len(names):
            raise ProtoSyntaxError(f"message {message.name} has a field name or number twice")
        _add_optional_oneofs(message)

    def _oneof(self, message: DescriptorProto, full: str) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self._identifier())
        self._expect("{")
        while not self._take("}"):
            if self._peek() == "option":
                self._skip_statement()
            elif not self._take(";"):
                self._field(message, full, oneof=index)

    def _field(self, message: DescriptorProto, full: str, oneof: int | None = None) -> None:
        label = self._next() if self._peek() in LABELS and oneof is None else None
        if label is None and self._tokens[self._at : self._at + 2] == ["map", "<"]:
            self._map(message, full)
            return
        type_ = self._type_name()
        if type_ == "group":
            raise ProtoSyntaxError("groups are not supported")
        field = message.field.add(name=self._identifier())
        field.label = LABELS[label or "optional"]
        _set_type(field, type_)
        self._number(field, full)
        if oneof is not None:
            field.oneof_index = oneof
        elif label == "optional" and self._proto3:
            field.proto3_optional = True

    def _map(self, message: DescriptorProto, full: str) -> None:
        self._expect("map")
        self._expect("<")
        key = self._type_name()
        if key not in SCALARS or key in ("double", "float", "bytes"):
            raise ProtoSyntaxError(f"'{key}' cannot be the key of a map")
        self._expect(",")
        value = self._type_name()
        self._expect(">")
        name = self._identifier()
        entry_name = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        for number, (side, type_) in enumerate((("key", key), ("value", value)), start=1):
            part = entry.field.add(name=side, number=number, label=LABELS["optional"])
            _set_type(part, type_)
        field = message.field.add(name=name, label=LABELS["repeated"], type_name=entry_name)
        self._number(field, full)

    def _number(self, field: FieldDescriptorProto, message: str) -> None:
        self._expect("=")
        field.number = _field_number(self._integer(), field.name)
        options = self._options()
        self._expect(";")
        if "confluent.field_meta" in options:
            self.params[f"{message}.{field.name}"] = _meta_params(options)

    def _options(self) -> list[str]:
        """The tokens of options in brackets, if there are any."""
        start = self._at
        if self._peek() == "[":
            self._skip_block()
        return self._tokens[start : self._at]

    def _enum(self, enum: EnumDescriptorProto) -> None:
        enum.name = self._identifier()
        self._expect("{")
        while not self._take("}"):
            if self._peek() in ("option", "reserved"):
                if self._tokens[self._at : self._at + 4] == ["option", "allow_alias", "=", "true"]:
                    enum.options.allow_alias = True
                self._skip_statement()
            elif not self._take(";"):
                value = enum.value.add(name=self._identifier())
                self._expect("=")
                value.number = self._integer()
                self._options()
                self._expect(";")
        if not enum.value:
            raise ProtoSyntaxError(f"enum {enum.name} has no values")

    def _skip_statement(self) -> None:
        while self._peek() != ";":
            if self._peek() in ("{", "["):
                self._skip_block()
            else:
                self._next()
        self._next()

    def _skip_block(self) -> None:
        """Skips to the bracket that closes the next one that opens."""
        depth = 0
        while True:
            token = self._next()
            if token in ("{", "["):
                depth += 1
            elif token in ("}", "]"):
                depth -= 1
                if depth == 0:
                    return


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            line = text.count("\n", 0, at) + 1
            raise ProtoSyntaxError(f"line {line}: unexpected '{text[at]}'")
        if match.lastgroup is not None:
            yield match[0]
        at = match.end()


def _set_type(field: FieldDescriptorProto, name: str) -> None:
    if name in SCALARS:
        field.type = SCALARS[name]
    else:
        field.type_name = name


def _field_number(number: int, name: str) -> int:
    if not 1 <= number < 2**29 or 19000 <= number <= 19999:
        raise ProtoSyntaxError(f"field {name} cannot have the number {number}")
    return number


def _meta_params(options: list[str]) -> dict[str, str]:
    """The entries of `params` in a `field_meta` option."""
    found: dict[str, list[str]] = {"key": [], "value": []}
    for name, mark, text in zip(options, options[1:], options[2:], strict=False):
        if name in found and mark == ":":
            found[name].append(text.strip("\"'"))
    return dict(zip(found["key"], found["value"], strict=False))


def _add_optional_oneofs(message: DescriptorProto) -> None:
    """Gives each proto3 `optional` field the oneof of its own that descriptors require."""
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


class _Resolver:
    """Finds what the type names in a file mean, in it and in what it imports."""

    def __init__(self, imports: Mapping[str, str]) -> None:
        self._imports = imports
        self.files: list[FileDescriptorProto] = []  # what was imported, in the order of need
        self.params: Params = {}
        self._symbols: dict[str, bool] = {}  # full name → whether it is an enum
        self._read: set[str] = set()

    def resolve(self, file: FileDescriptorProto) -> None:
        self.read_imports(file)
        self._declare(file)
        scope = f".{file.package}" if file.package else ""
        for message in file.message_type:
            self._message(message, scope)

    def read_imports(self, file: FileDescriptorProto) -> None:
        for name in file.dependency:
            if name in self._read:
                continue
            self._read.add(name)
            imported = self._import(name)
            self.read_imports(imported)
            self._declare(imported)
            self.files.append(imported)

    def _import(self, name: str) -> FileDescriptorProto:
        text = self._imports.get(name) or BUILT_IN.get(name)
        if text is not None:
            return self._parsed(name, text)
        known = well_known(name)
        if known is None:
            raise ProtoSyntaxError(f"No dependency '{name}' found: refer to its subject")
        return known

    def _parsed(self, name: str, text: str) -> FileDescriptorProto:
        descriptor = _decode(text)
        if descriptor is None:
            parser = _Parser(text, name)
            descriptor = parser.file()
            self.params |= parser.params
        descriptor.name = name
        return descriptor

    def _declare(self, file: FileDescriptorProto) -> None:
        scope = f".{file.package}" if file.package else ""
        for enum in file.enum_type:
            self._symbols[f"{scope}.{enum.name}"] = True
        for message in file.message_type:
            self._declare_message(message, scope)

    def _declare_message(self, message: DescriptorProto, scope: str) -> None:
        name = f"{scope}.{message.name}"
        self._symbols[name] = False
        for enum in message.enum_type:
            self._symbols[f"{name}.{enum.name}"] = True
        for nested in message.nested_type:
            self._declare_message(nested, name)

    def _message(self, message: DescriptorProto, scope: str) -> None:
        inner = f"{scope}.{message.name}"
        for field in message.field:
            if field.type_name:
                field.type_name = self._find(field.type_name, inner)
                is_enum = self._symbols[field.type_name]
                field.type = (
                    FieldDescriptorProto.TYPE_ENUM if is_enum else FieldDescriptorProto.TYPE_MESSAGE
                )
        for nested in message.nested_type:
            self._message(nested, inner)

    def _find(self, name: str, scope: str) -> str:
        if name.startswith("."):
            candidates = [name]
        else:
            steps = scope.split(".")
            candidates = [".".join([*steps[:n], name]) for n in range(len(steps), 0, -1)]
        for candidate in candidates:
            if candidate in self._symbols:
                return candidate
        raise ProtoSyntaxError(f'"{name}" is not defined')


@cache
def well_known(name: str) -> FileDescriptorProto | None:
    """A file that comes with Protobuf itself, such as google/protobuf/timestamp.proto."""
    match = re.fullmatch(r"google/protobuf/(\w+)\.proto", name)
    if match is None:
        return None
    try:
        module = import_module(f"google.protobuf.{match[1]}_pb2")
    except ImportError:
        return None
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
