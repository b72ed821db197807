"""Compatibility of Avro schemas, by Avro's schema resolution."""

from __future__ import annotations

from dataclasses import replace

from headrace.registry.compatibility.incompatibility import Incompatibility
from headrace.schemas.avro import (
    Array,
    AvroField,
    AvroType,
    Enum,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Union,
)

# A value of the first type may be read as any of the second.
PROMOTIONS = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}


def incompatibilities(reader: AvroType, writer: AvroType) -> list[Incompatibility]:
    """Why `reader` cannot read what `writer` wrote; nothing if it can."""
    found = _Comparison().compare(reader, writer)
    return [replace(incompatibility, path=incompatibility.path or "/") for incompatibility in found]


class _Comparison:
    """One comparison, in which each pair of types is looked at once.

    Pairs under way count as fitting, so that recursive types come to an end. When one turns out
    not to fit, what was concluded meanwhile is forgotten, as it may rest on that; that it does
    not fit is final.
    """

    def __init__(self) -> None:
        self._fitting: set[tuple[int, int]] = set()
        self._unfitting: dict[tuple[int, int], list[Incompatibility]] = {}

    def compare(self, reader: AvroType, writer: AvroType) -> list[Incompatibility]:
        pair = (id(reader), id(writer))
        if pair in self._fitting:
            return []
        if pair not in self._unfitting:
            before = set(self._fitting)
            self._fitting.add(pair)
            found = self._compare(reader, writer)
            if not found:
                return []
            self._fitting = before
            self._unfitting[pair] = found
        return self._unfitting[pair]

    def _compare(self, reader: AvroType, writer: AvroType) -> list[Incompatibility]:
        match reader, writer:
            case _, Union():
                return self._each_branch(reader, writer)
            case Union(), _:
                return self._some_branch(reader, writer)
            case Primitive(), Primitive():
                if reader.name == writer.name or reader.name in PROMOTIONS.get(writer.name, ()):
                    return []
            case Array(), Array():
                return _below("/items", self.compare(reader.items, writer.items))
            case Map(), Map():
                return _below("/values", self.compare(reader.values, writer.values))
            case Enum(), Enum():
                return _renamed(reader, writer) + _unknown_symbols(reader, writer)
            case Fixed(), Fixed():
                return _renamed(reader, writer) + _resized(reader, writer)
            case Record(), Record():
                return self._record(reader, writer)
        kinds = f"reader type: {reader.kind.upper()} not compatible with writer type: "
        return [Incompatibility("TYPE_MISMATCH", "", kinds + writer.kind.upper())]

    def _each_branch(self, reader: AvroType, writer: Union) -> list[Incompatibility]:
        found: list[Incompatibility] = []
        for number, branch in enumerate(writer.branches):
            place = f"/{number}" if isinstance(reader, Union) else ""
            found += _below(place, self.compare(reader, branch))
        return found

    def _some_branch(self, reader: Union, writer: AvroType) -> list[Incompatibility]:
        if any(not self.compare(branch, writer) for branch in reader.branches):
            return []
        lacking = f"reader union lacking writer type: {writer.kind.upper()}"
        return [Incompatibility("MISSING_UNION_BRANCH", "", lacking)]

    def _record(self, reader: Record, writer: Record) -> list[Incompatibility]:
        found = _renamed(reader, writer)
        by_name = {field.name: field for field in writer.fields}
        for number, field in enumerate(reader.fields):
            written = _written(field, by_name)
            place = f"/fields/{number}"
            if written is not None:
                found += _below(f"{place}/type", self.compare(field.type, written.type))
            elif not field.has_default:
                found.append(
                    Incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", place, field.name)
                )
        return found


def _below(path: str, found: list[Incompatibility]) -> list[Incompatibility]:
    return [replace(incompatibility, path=path + incompatibility.path) for incompatibility in found]


def _written(field: AvroField, by_name: dict[str, AvroField]) -> AvroField | None:
    """The writer's field that the reader's one reads, by its name or one of its aliases."""
    return next((by_name[n] for n in (field.name, *field.aliases) if n in by_name), None)


def _renamed(reader: Named, writer: Named) -> list[Incompatibility]:
    # Namespaces do not count, as in Java's implementation; an alias must match whole.
    if reader.name == writer.name or writer.fullname in reader.aliases:
        return []
    return [Incompatibility("NAME_MISMATCH", "/name", f"expected: {writer.fullname}")]


def _unknown_symbols(reader: Enum, writer: Enum) -> list[Incompatibility]:
    missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
    if not missing or reader.default is not None:
        return []
    return [Incompatibility("MISSING_ENUM_SYMBOLS", "/symbols", f"[{', '.join(missing)}]")]


def _resized(reader: Fixed, writer: Fixed) -> list[Incompatibility]:
    if reader.size == writer.size:
        return []
    sizes = f"expected: {writer.size}, found: {reader.size}"
    return [Incompatibility("FIXED_SIZE_MISMATCH", "/size", sizes)]
