"""Avro's binary encoding, compiled from a schema into functions over bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from headrace.formats.avro_schema import Node, member_name
from headrace.formats.connect import bytes_decimal, decimal_bytes

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


def decoder(node: Node) -> Read:
    """Values in Connect's terms (see headrace.formats.connect), logical types as plain numbers."""
    return _decoder(node, {})


def _decoder(node: Node, known: dict[int, Read]) -> Read:
    # Of a schema that contains itself, the inner mention is looked up when it is reached.
    if id(node) in known:
        return lambda source: known[id(node)](source)
    if node.type == "record":
        known[id(node)] = _unfinished
        parts = [(name, _decoder(part, known)) for name, part, _ in node.fields]
        known[id(node)] = lambda source: {name: read(source) for name, read in parts}
        return known[id(node)]
    if node.type == "union":
        return _union_decoder(node, known)
    if node.type == "array":
        assert node.items is not None
        item = _decoder(node.items, known)
        if node.items.is_map_entry:
            return lambda source: {entry["key"]: entry["value"] for entry in _blocks(source, item)}
        return lambda source: _blocks(source, item)
    if node.type == "map":
        assert node.items is not None
        value = _decoder(node.items, known)
        return lambda source: dict(_blocks(source, lambda s: (_text(s), value(s))))
    if node.type == "enum":
        return lambda source: _symbol(node.symbols, source.integer())
    if node.is_decimal:
        scale = int(node.props.get("scale", 0))
        raw = _raw(node)
        return lambda source: bytes_decimal(raw(source), scale)
    return _raw(node)


def _unfinished(source: Source) -> Any:
    raise AssertionError("a record's decoder is made before it is used")


def _union_decoder(node: Node, known: dict[int, Read]) -> Read:
    reads = [_decoder(branch, known) for branch in node.branches]
    wrap = node.only_branch is None
    names = [member_name(branch) for branch in node.branches]

    def read(source: Source) -> Any:
        index = source.long()
        if not 0 <= index < len(reads):
            raise ValueError(f"Malformed data. There is no branch {index} in the union")
        value = reads[index](source)
        return {names[index]: value} if wrap and value is not None else value

    return read


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


def _symbol(symbols: list[str], index: int) -> str:
    if not 0 <= index < len(symbols):
        raise ValueError(f"Malformed data. There is no symbol {index} in the enum")
    return symbols[index]


def _text(source: Source) -> str:
    return source.take(source.long()).decode("utf-8", "replace")


def _raw(node: Node) -> Read:
    size = node.size
    return {
        "null": lambda source: None,
        "boolean": lambda source: source.take(1) == b"\1",
        "int": Source.integer,
        "long": Source.long,
        "float": lambda source: struct.unpack("<f", source.take(4))[0],
        "double": lambda source: struct.unpack("<d", source.take(8))[0],
        "bytes": lambda source: source.take(source.long()),
        "string": _text,
        "fixed": lambda source: source.take(size),
    }[node.type]


def encoder(node: Node) -> Write:
    """The other way round."""
    return _encoder(node, {})


def _encoder(node: Node, known: dict[int, Write]) -> Write:
    if id(node) in known:
        return lambda out, value: known[id(node)](out, value)
    if node.type == "record":
        parts: list[tuple[str, Write]] = []

        def write_record(out: bytearray, value: Any) -> None:
            for name, write in parts:
                write(out, value[name])

        known[id(node)] = write_record
        parts += [(name, _encoder(part, known)) for name, part, _ in node.fields]
        return write_record
    if node.type == "union":
        return _union_encoder(node, known)
    if node.type == "array":
        assert node.items is not None
        item = _encoder(node.items, known)
        if node.items.is_map_entry:
            return lambda out, value: _write_block(
                out, [{"key": k, "value": v} for k, v in value.items()], item
            )
        return lambda out, value: _write_block(out, value, item)
    if node.type == "map":
        assert node.items is not None
        value_writer = _encoder(node.items, known)

        def write_entry(out: bytearray, entry: Any) -> None:
            _write_bytes(out, entry[0].encode("utf-8", "replace"))
            value_writer(out, entry[1])

        return lambda out, value: _write_block(out, list(value.items()), write_entry)
    if node.type == "enum":
        indexes = {symbol: i for i, symbol in enumerate(node.symbols)}

        def write_symbol(out: bytearray, value: Any) -> None:
            if value not in indexes:
                raise ValueError(f"{value} is not a symbol of {node.name}")
            write_long(out, indexes[value])

        return write_symbol
    if node.is_decimal:
        raw = _raw_writer(node)
        return lambda out, value: raw(out, decimal_bytes(value))
    return _raw_writer(node)


def _union_encoder(node: Node, known: dict[int, Write]) -> Write:
    writes = [_encoder(branch, known) for branch in node.branches]
    kinds = [branch.type for branch in node.branches]
    null = kinds.index("null") if "null" in kinds else None
    names = {member_name(branch): i for i, branch in enumerate(node.branches)}
    only = node.only_branch

    def write(out: bytearray, value: Any) -> None:
        if isinstance(value, dict) and only is None:
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


def _raw_writer(node: Node) -> Write:
    def write_fixed(out: bytearray, value: bytes) -> None:
        if node.is_decimal:
            value = value.rjust(node.size, b"\xff" if value[0] >= 0x80 else b"\0")
        if len(value) != node.size:
            raise ValueError(f"{node.name} takes {node.size} bytes, not {len(value)}")
        out.extend(value)

    writers: dict[str, Write] = {
        "null": lambda out, value: None,
        "boolean": lambda out, value: out.append(1 if value else 0),
        "int": write_long,
        "long": write_long,
        "float": lambda out, value: out.extend(struct.pack("<f", value)),
        "double": lambda out, value: out.extend(struct.pack("<d", value)),
        "bytes": _write_bytes,
        "string": lambda out, value: _write_bytes(out, value.encode("utf-8", "replace")),
        "fixed": write_fixed,
    }
    return writers[node.type]
