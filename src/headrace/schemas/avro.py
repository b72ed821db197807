"""Avro schemas: parsed by the rules of the specification, printed as Java prints them.

The written form is what two equal schemas have in common; documentation and extra properties
stay part of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from headrace.schemas.nesting import check_nesting

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What is in a schema's JSON.
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Object = dict[str, Json]
Props = tuple[tuple[str, Json], ...]


class AvroSchemaError(ValueError):
    """A text that is not an Avro schema; says what is wrong."""


@dataclass(frozen=True, eq=False)
class AvroType:
    """Any Avro type. Compared by identity, as a recursive type could not be otherwise."""

    props: Props = ()

    @property
    def kind(self) -> str:
        return type(self).__name__.lower()

    def number(self, name: str, default: int = 0) -> int:
        """A property that is a whole number; ValueError where it is anything else."""
        found = dict(self.props).get(name, default)
        if isinstance(found, int | str | float):
            return int(found)
        raise ValueError(f"{name} is not a number: {_json(found)}")

    def text(self, name: str) -> str:
        """A property as a text; empty if there is none."""
        return str(dict(self.props).get(name, ""))

    @property
    def logical(self) -> str:
        return self.text("logicalType")

    @property
    def is_decimal(self) -> bool:
        return self.kind in ("bytes", "fixed") and self.logical == "decimal"

    @property
    def not_null(self) -> AvroType | None:
        """The one branch beside null, of a union that merely says that a value may be null."""
        return None


@dataclass(frozen=True, eq=False)
class Primitive(AvroType):
    name: str = "null"

    @property
    def kind(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Array(AvroType):
    items: AvroType = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Map(AvroType):
    values: AvroType = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Union(AvroType):
    branches: tuple[AvroType, ...] = ()

    @property
    def not_null(self) -> AvroType | None:
        others = [branch for branch in self.branches if branch.kind != "null"]
        return others[0] if len(others) == 1 else None


@dataclass(frozen=True, eq=False)
class Named(AvroType):
    """A type with a full name, aliases (full names too) and documentation."""

    fullname: str = ""
    aliases: tuple[str, ...] = ()
    doc: str | None = None

    @property
    def name(self) -> str:
        return self.fullname.rpartition(".")[2]

    @property
    def namespace(self) -> str:
        return self.fullname.rpartition(".")[0]


@dataclass(frozen=True, eq=False)
class Enum(Named):
    symbols: tuple[str, ...] = ()
    default: str | None = None


@dataclass(frozen=True, eq=False)
class Fixed(Named):
    size: int = 0


@dataclass(frozen=True)
class AvroField:
    name: str
    type: AvroType
    default: Json = None
    has_default: bool = False
    doc: str | None = None
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    props: Props = ()


@dataclass(frozen=True, eq=False)
class Record(Named):
    # A list, filled after the record has its name: its fields may be of its own type.
    fields: list[AvroField] = field(default_factory=list)


def parse(
    text: str, known: Mapping[str, Named] | None = None, *, check_defaults: bool = True
) -> tuple[AvroType, dict[str, Named]]:
    """The schema, and all named types that it and `known` define, by full name. Others' schemas
    may have defaults that are none: who only reads by them does not check those."""
    try:
        declaration = json.loads(text)
        check_nesting(declaration)
    except ValueError as failure:
        # Java's parser takes the bare name of a primitive too.
        if text.strip() not in PRIMITIVES:
            raise AvroSchemaError(f"not JSON: {failure}") from failure
        declaration = text.strip()
    except RecursionError as failure:
        raise AvroSchemaError("nested too deeply") from failure
    reader = _Reader(dict(known or {}), check_defaults)
    try:
        return reader.type(declaration, ""), reader.names
    except RecursionError as failure:
        raise AvroSchemaError("nested too deeply") from failure


class _Reader:
    """Reads one schema; collects the names it defines."""

    def __init__(self, names: dict[str, Named], check_defaults: bool) -> None:
        self.names = names
        self._check_defaults = check_defaults

    def type(self, declaration: Json, namespace: str) -> AvroType:
        match declaration:
            case str():
                return self._reference(declaration, namespace)
            case list():
                return self._union(declaration, namespace)
            case dict():
                kind = declaration.get("type")
                if isinstance(kind, str):
                    return self._declared(kind, declaration, namespace)
                if isinstance(kind, dict | list):
                    return self.type(kind, namespace)
                raise AvroSchemaError(f"No type: {_json(declaration)}")
            case _:
                raise AvroSchemaError(f"Schema not yet supported: {_json(declaration)}")

    def _reference(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name=name)
        for candidate in (_qualify(name, namespace), name):
            if candidate in self.names:
                return self.names[candidate]
        raise AvroSchemaError(f'Undefined name: "{name}"')

    def _union(self, branches: list[Json], namespace: str) -> Union:
        types = tuple(self.type(branch, namespace) for branch in branches)
        seen = set()
        for branch in types:
            if isinstance(branch, Union):
                raise AvroSchemaError("Nested union")
            identity = branch.fullname if isinstance(branch, Named) else branch.kind
            if identity in seen:
                raise AvroSchemaError(f"Duplicate in union: {identity}")
            seen.add(identity)
        return Union(branches=types)

    def _declared(self, kind: str, declaration: Object, namespace: str) -> AvroType:
        if kind in PRIMITIVES:
            return Primitive(_props(declaration, {"type"}), name=kind)
        match kind:
            case "array":
                items = self.type(_needed(declaration, "items"), namespace)
                return Array(_props(declaration, {"type", "items"}), items=items)
            case "map":
                values = self.type(_needed(declaration, "values"), namespace)
                return Map(_props(declaration, {"type", "values"}), values=values)
            case "record" | "error":
                return self._record(declaration, namespace)
            case "enum":
                return self._enum(declaration, namespace)
            case "fixed":
                return self._fixed(declaration, namespace)
            case _:
                return self._reference(kind, namespace)

    def _record(self, declaration: Object, namespace: str) -> Record:
        record = Record(*self._named(declaration, namespace, {"fields"}))
        self._define(record)
        fields = declaration.get("fields")
        if not isinstance(fields, list):
            raise AvroSchemaError("Record has no fields")
        seen = set()
        for one in fields:
            read = self._field(one, record.namespace)
            if read.name in seen:
                raise AvroSchemaError(f"Duplicate field {read.name} in record {record.fullname}")
            seen.add(read.name)
            record.fields.append(read)
        return record

    def _field(self, declaration: Json, namespace: str) -> AvroField:
        if not isinstance(declaration, dict):
            raise AvroSchemaError(f"Field is not an object: {_json(declaration)}")
        name = _name(declaration.get("name"))
        type_ = self.type(_needed(declaration, "type"), namespace)
        default, has_default = declaration.get("default"), "default" in declaration
        if self._check_defaults and has_default and not fits(default, type_):
            raise AvroSchemaError(
                f"Invalid default for field {name}: {_json(default)} not a "
                f"{_json(_Writer().write(type_))}"
            )
        order = declaration.get("order", "ascending")
        if not isinstance(order, str) or order not in ("ascending", "descending", "ignore"):
            raise AvroSchemaError(f"Unknown order of field {name}: {order}")
        taken = {"name", "type", "doc", "default", "order", "aliases"}
        return AvroField(
            name,
            type_,
            default,
            has_default,
            _doc(declaration),
            order,
            _aliases(declaration),
            _props(declaration, taken),
        )

    def _enum(self, declaration: Object, namespace: str) -> Enum:
        symbols = declaration.get("symbols")
        if not isinstance(symbols, list):
            raise AvroSchemaError("Enum has no symbols")
        names = tuple(_name(symbol) for symbol in symbols)
        if len(set(names)) < len(names):
            raise AvroSchemaError(f"Duplicate enum symbol: {_json(symbols)}")
        default = declaration.get("default")
        if default is not None and (not isinstance(default, str) or default not in names):
            raise AvroSchemaError(f"The Enum Default: {default} is not in the enum symbol set")
        named = self._named(declaration, namespace, {"symbols", "default"})
        enum = Enum(*named, names, default)
        self._define(enum)
        return enum

    def _fixed(self, declaration: Object, namespace: str) -> Fixed:
        size = declaration.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise AvroSchemaError(f"Invalid or no size: {_json(declaration)}")
        fixed = Fixed(*self._named(declaration, namespace, {"size"}), size)
        self._define(fixed)
        return fixed

    def _named(
        self, declaration: Object, namespace: str, own: set[str]
    ) -> tuple[Props, str, tuple[str, ...], str | None]:
        """What a named type begins with: its properties, full name, aliases and documentation."""
        given = declaration.get("name")
        if not isinstance(given, str):
            raise AvroSchemaError(f"No name in schema: {_json(declaration)}")
        space = declaration.get("namespace", namespace)
        fullname = _qualify(given, space if isinstance(space, str) else "")
        for part in fullname.split("."):
            _name(part)
        if fullname in PRIMITIVES:
            raise AvroSchemaError(f"Schemas may not be named after primitives: {fullname}")
        home = fullname.rpartition(".")[0]
        aliases = tuple(_qualify(alias, home) for alias in _aliases(declaration))
        taken = {"type", "name", "namespace", "doc", "aliases"} | own
        return _props(declaration, taken), fullname, aliases, _doc(declaration)

    def _define(self, named: Named) -> None:
        if named.fullname in self.names:
            raise AvroSchemaError(f"Can't redefine: {named.fullname}")
        self.names[named.fullname] = named


def fits(value: Json, type_: AvroType) -> bool:
    """Whether a JSON value can be a default of the type."""
    match type_:
        case Primitive(name="null"):
            return value is None
        case Primitive(name="boolean"):
            return isinstance(value, bool)
        case Primitive(name="int"):
            return _integer(value, 32)
        case Primitive(name="long"):
            return _integer(value, 64)
        case Primitive(name="float" | "double"):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number or value in ("NaN", "Infinity", "-Infinity")
        case Primitive() | Fixed():
            return isinstance(value, str)
        case Enum():
            return value in type_.symbols
        case Array():
            return isinstance(value, list) and all(fits(item, type_.items) for item in value)
        case Map():
            return isinstance(value, dict) and all(fits(v, type_.values) for v in value.values())
        case Union():
            # The specification says: of the first branch. Java takes any since 1.12.
            return any(fits(value, branch) for branch in type_.branches)
        case Record():
            return isinstance(value, dict) and all(
                fits(value[f.name], f.type) if f.name in value else f.has_default
                for f in type_.fields
            )
        case _:
            return False


def canonical(type_: AvroType, defined: Mapping[str, Named] | None = None) -> str:
    """The schema as Java's `Schema.toString` prints it; `defined` types appear by name only."""
    return _json(_Writer(defined).write(type_))


def normal(type_: AvroType, defined: Mapping[str, Named] | None = None) -> str:
    """The canonical text with properties sorted, so that their order makes no difference."""
    return _json(_Writer(defined, sort=True).write(type_))


class _Writer:
    def __init__(self, defined: Mapping[str, Named] | None = None, sort: bool = False) -> None:
        self._written = set(defined or ())
        self._sort = sort

    def write(self, type_: AvroType, namespace: str = "") -> Json:
        match type_:
            case Primitive():
                if not type_.props:
                    return type_.name
                return {"type": type_.name, **self._props(type_.props)}
            case Union():
                return [self.write(branch, namespace) for branch in type_.branches]
            case Array():
                items = self.write(type_.items, namespace)
                return {"type": "array", "items": items, **self._props(type_.props)}
            case Map():
                values = self.write(type_.values, namespace)
                return {"type": "map", "values": values, **self._props(type_.props)}
            case Named():
                return self._named(type_, namespace)
        raise TypeError(type_)

    def _named(self, type_: Named, namespace: str) -> Json:
        if type_.fullname in self._written:
            return type_.name if type_.namespace == namespace else type_.fullname
        self._written.add(type_.fullname)
        head: Object = {"type": type_.kind, "name": type_.name}
        if type_.namespace != namespace:
            head["namespace"] = type_.namespace
        if type_.doc is not None:
            head["doc"] = type_.doc
        match type_:
            case Record():
                head["fields"] = [self._field(f, type_.namespace) for f in type_.fields]
            case Enum():
                head["symbols"] = list(type_.symbols)
                if type_.default is not None:
                    head["default"] = type_.default
            case Fixed():
                head["size"] = type_.size
        head |= self._props(type_.props)
        if type_.aliases:
            home = type_.namespace
            head["aliases"] = [
                alias.rpartition(".")[2] if alias.rpartition(".")[0] == home else alias
                for alias in type_.aliases
            ]
        return head

    def _field(self, field_: AvroField, namespace: str) -> Object:
        written: Object = {"name": field_.name, "type": self.write(field_.type, namespace)}
        if field_.doc is not None:
            written["doc"] = field_.doc
        if field_.has_default:
            written["default"] = field_.default
        if field_.order != "ascending":
            written["order"] = field_.order
        if field_.aliases:
            written["aliases"] = list(field_.aliases)
        return written | self._props(field_.props)

    def _props(self, props: Props) -> Object:
        return dict(sorted(props) if self._sort else props)


def _json(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _integer(value: Json, bits: int) -> bool:
    return type(value) is int and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _qualify(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name.lstrip(".")


def _name(name: Json) -> str:
    if not isinstance(name, str):
        raise AvroSchemaError(f"No name: {_json(name)}")
    if not NAME.fullmatch(name):
        raise AvroSchemaError(f"Illegal character in: {name}")
    return name


def _needed(declaration: Object, key: str) -> Json:
    if key not in declaration:
        raise AvroSchemaError(f"No {key}: {_json(declaration)}")
    return declaration[key]


def _doc(declaration: Object) -> str | None:
    doc = declaration.get("doc")
    return doc if isinstance(doc, str) else None


def _aliases(declaration: Object) -> tuple[str, ...]:
    aliases = declaration.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(a, str) for a in aliases):
        raise AvroSchemaError(f"aliases not an array of names: {_json(aliases)}")
    return tuple(cast(list[str], aliases))


def _props(declaration: Object, taken: set[str]) -> Props:
    return tuple((key, value) for key, value in declaration.items() if key not in taken)
