"""Avro's binary encoding, compiled from a schema into functions over bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from headrace.formats.avro.columns_of_schema import is_map_entry, member_name
from headrace.formats.connect import bytes_decimal, decimal_bytes
from headrace.schemas import avro

# A block of more items than this, each of no bytes at all, can only be a damaged length.
_MAX_EMPTY_ITEMS = 1_000_000
_INT_BYTES, _LONG_BYTES = 5, 10


class Source:
    """Bytes and a position in them."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, size: int) -> bytes:
        start = self.position
        end = start + size
        if size < 0 or end > len(self.data):
            raise ValueError(f"Malformed data. Length is out of bounds: {size}")
        self.position = end
        return self.data[start:end]

    def integer(self) -> int:
        return self._varint(_INT_BYTES, 32)

    def long(self) -> int:
        return self._varint(_LONG_BYTES, 64)

    def _varint(self, most: int, bits: int) -> int:
        """Bits beyond the type's size are lost, as in Java."""
        data, position, shift, value = self.data, self.position, 0, 0
        try:
            while (byte := data[position]) >= 0x80:
                value |= (byte & 0x7F) << shift
                shift += 7
                position += 1
                if shift >= 7 * most:
                    raise ValueError(f"Invalid {bits}-bit encoding")
        except IndexError as e:
            raise ValueError("Unexpected end of data") from e
        self.position = position + 1
        value = (value | byte << shift) & ((1 << bits) - 1)
        return (value >> 1) ^ -(value & 1)


Read = Callable[[Source], Any]
Write = Callable[[bytearray, Any], None]


def decoder(type_: avro.AvroType, *, connect: bool = True) -> Read:
    """Values in Connect's terms (see headrace.formats.connect), logical types as numbers;
    unless `connect`, entries of maps stay records, and values of unions bare."""
    return _Decoders(connect).of(type_)


class _Decoders:
    """Makes the functions that read a schema's types, one for each record."""

    def __init__(self, connect: bool) -> None:
        self._connect = connect
        self._known: dict[int, Read] = {}

    def of(self, type_: avro.AvroType) -> Read:
        known = self._known
        # Of a schema that contains itself, the inner mention is looked up when it is reached.
        if id(type_) in known:
            return lambda source: known[id(type_)](source)
        match type_:
            case avro.Record():
                known[id(type_)] = _unfinished
                parts = [(f.name, self.of(f.type)) for f in type_.fields]
                known[id(type_)] = lambda source: {name: read(source) for name, read in parts}
                return known[id(type_)]
            case avro.Union():
                return self._union(type_)
            case avro.Array():
                item = self.of(type_.items)
                if is_map_entry(type_.items) and self._connect:
                    return lambda source: {e["key"]: e["value"] for e in _blocks(source, item)}
                return lambda source: _blocks(source, item)
            case avro.Map():
                value = self.of(type_.values)
                return lambda source: dict(_blocks(source, lambda s: (_text(s), value(s))))
            case avro.Enum(symbols=symbols):
                return lambda source: _symbol(symbols, source.integer())
        raw = _raw(type_)
        if type_.is_decimal:
            scale = type_.number("scale")
            return lambda source: bytes_decimal(raw(source), scale)
        return raw

    def _union(self, union: avro.Union) -> Read:
        reads = [self.of(branch) for branch in union.branches]
        named = self._connect and union.not_null is None
        names = [member_name(branch) for branch in union.branches]

        def read(source: Source) -> object:
            index = source.long()
            if not 0 <= index < len(reads):
                raise ValueError(f"Malformed data. There is no branch {index} in the union")
            value = reads[index](source)
            return {names[index]: value} if named and value is not None else value

        return read


def _unfinished(source: Source) -> object:
    raise AssertionError("a record's decoder is made before it is used")


def _blocks(source: Source, item: Read) -> list[Any]:
    items: list[Any] = []
    while count := source.long():
        if count < 0:
            count = -count
            source.long()  # the block's size in bytes
        start = source.position
        for _ in range(count):
            items.append(item(source))
            if source.position == start and len(items) > _MAX_EMPTY_ITEMS:
                raise ValueError(f"Malformed data. Length is out of bounds: {count}")
    return items


def _symbol(symbols: Sequence[str], index: int) -> str:
    if not 0 <= index < len(symbols):
        raise ValueError(f"Malformed data. There is no symbol {index} in the enum")
    return symbols[index]


def _text(source: Source) -> str:
    return source.take(source.long()).decode("utf-8", "replace")


_PRIMITIVES: dict[str, Read] = {
    "null": lambda source: None,
    "boolean": lambda source: source.take(1) == b"\1",
    "int": Source.integer,
    "long": Source.long,
    "float": lambda source: struct.unpack("<f", source.take(4))[0],
    "double": lambda source: struct.unpack("<d", source.take(8))[0],
    "bytes": lambda source: source.take(source.long()),
    "string": _text,
}


def _raw(type_: avro.AvroType) -> Read:
    if isinstance(type_, avro.Fixed):
        size = type_.size
        return lambda source: source.take(size)
    return _PRIMITIVES[type_.kind]


def encoder(type_: avro.AvroType) -> Write:
    """A function that writes a value of the schema; the reverse of `decoder`."""
    return _encoder(type_, {})


def _encoder(type_: avro.AvroType, known: dict[int, Write]) -> Write:
    if id(type_) in known:
        return lambda out, value: known[id(type_)](out, value)
    match type_:
        case avro.Record():
            parts: list[tuple[str, Write]] = []

            def write_record(out: bytearray, value: Any) -> None:
                for name, write in parts:
                    write(out, value[name])

            known[id(type_)] = write_record
            parts += [(f.name, _encoder(f.type, known)) for f in type_.fields]
            return write_record
        case avro.Union():
            return _union_encoder(type_, known)
        case avro.Array():
            item = _encoder(type_.items, known)
            if is_map_entry(type_.items):
                return lambda out, value: _write_block(
                    out, [{"key": k, "value": v} for k, v in value.items()], item
                )
            return lambda out, value: _write_block(out, value, item)
        case avro.Map():
            value_writer = _encoder(type_.values, known)

            def write_entry(out: bytearray, entry: tuple[str, object]) -> None:
                _write_bytes(out, entry[0].encode("utf-8", "replace"))
                value_writer(out, entry[1])

            return lambda out, value: _write_block(out, list(value.items()), write_entry)
        case avro.Enum(symbols=symbols, fullname=name):
            indexes = {symbol: i for i, symbol in enumerate(symbols)}

            def write_symbol(out: bytearray, value: str) -> None:
                if value not in indexes:
                    raise ValueError(f"{value} is not a symbol of {name}")
                write_long(out, indexes[value])

            return write_symbol
    raw = _raw_writer(type_)
    if type_.is_decimal:
        return lambda out, value: raw(out, decimal_bytes(value))
    return raw


def _union_encoder(union: avro.Union, known: dict[int, Write]) -> Write:
    writes = [_encoder(branch, known) for branch in union.branches]
    kinds = [branch.kind for branch in union.branches]
    null = kinds.index("null") if "null" in kinds else None
    names = {member_name(branch): i for i, branch in enumerate(union.branches)}
    several = union.not_null is None

    def write(out: bytearray, value: object) -> None:
        if isinstance(value, dict) and several:
            chosen = [(names[name], v) for name, v in value.items() if v is not None]
            index, value = chosen[0] if chosen else (null, None)
        elif value is None:
            index = null
        else:
            index = next(i for i, kind in enumerate(kinds) if kind != "null")
        if index is None:
            raise ValueError("Invalid value: null used for required field")
        write_long(out, index)
        writes[index](out, value)

    return write


def _write_block(out: bytearray, items: list[Any], write: Write) -> None:
    if items:
        write_long(out, len(items))
        for item in items:
            write(out, item)
    out.append(0)


def write_long(out: bytearray, value: int) -> None:
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_bytes(out: bytearray, value: bytes) -> None:
    write_long(out, len(value))
    out += value


_PRIMITIVE_WRITERS: dict[str, Write] = {
    "null": lambda out, value: None,
    "boolean": lambda out, value: out.append(1 if value else 0),
    "int": write_long,
    "long": write_long,
    "float": lambda out, value: out.extend(struct.pack("<f", value)),
    "double": lambda out, value: out.extend(struct.pack("<d", value)),
    "bytes": _write_bytes,
    "string": lambda out, value: _write_bytes(out, value.encode("utf-8", "replace")),
}


def _raw_writer(type_: avro.AvroType) -> Write:
    if not isinstance(type_, avro.Fixed):
        return _PRIMITIVE_WRITERS[type_.kind]
    size, name, is_decimal = type_.size, type_.fullname, type_.is_decimal

    def write_fixed(out: bytearray, value: bytes) -> None:
        if is_decimal:
            value = value.rjust(size, b"\xff" if value[0] >= 0x80 else b"\0")
        if len(value) != size:
            raise ValueError(f"{name} takes {size} bytes, not {len(value)}")
        out.extend(value)

    return write_fixed
