"""The HyperLogLog sketch of COUNT_DISTINCT, with the same results as ksqlDB's.

16,384 registers, addressed by the first 14 bits of a 32-bit Murmur 2 hash. A register's rank is at
most 19, so the sum of 2^-rank over all registers is exact when counted in units of 2^-19, and is
kept up to date beside them: an estimate never walks the registers.

State: `[empty registers, sum in 2^-19, registers]`; the registers are a dict while few are set and
a bytearray from then on.
"""

from __future__ import annotations

import decimal
import math
import struct
from collections.abc import Callable
from typing import Any

from headrace.functions.aggregates.java_arithmetic import LONG_MAX, hashable
from headrace.model.types import SqlType, base_name

_BITS = 14
_REGISTERS = 1 << _BITS
_UNIT = 19
_SPARSE = 1024
_ALPHA_MM = (0.7213 / (1 + 1.079 / _REGISTERS)) * _REGISTERS * _REGISTERS

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF

State = list[Any]


def new() -> State:
    return [_REGISTERS, _REGISTERS << _UNIT, {}]


def offer(state: State, hashed: int) -> State:
    """Counts one value by its hash."""
    low = (hashed << _BITS) & _MASK | ((1 << (_BITS - 1)) + 1)
    return _raise(state, hashed >> (32 - _BITS), 33 - low.bit_length())


def merge(a: State, b: State) -> State:
    """`a` with the values of `b` counted too."""
    registers = b[2]
    ranks = registers.items() if isinstance(registers, dict) else enumerate(registers)
    for register, rank in ranks:
        if rank:
            _raise(a, register, rank)
    return a


def cardinality(state: State) -> int:
    empty, scaled, _ = state
    estimate: float = _ALPHA_MM / (scaled / (1 << _UNIT))
    if estimate <= 2.5 * _REGISTERS:
        if not empty:
            return LONG_MAX
        estimate = _REGISTERS * math.log(_REGISTERS / empty)
    return math.floor(estimate + 0.5)


def _raise(state: State, register: int, rank: int) -> State:
    registers = state[2]
    if isinstance(registers, dict):
        old = registers.get(register, 0)
    else:
        if isinstance(registers, bytes):  # state that was stored and read again
            registers = state[2] = bytearray(registers)
        old = registers[register]
    if rank > old:
        registers[register] = rank
        state[1] += (1 << (_UNIT - rank)) - (1 << (_UNIT - old))
        if not old:
            state[0] -= 1
            if isinstance(registers, dict) and len(registers) > _SPARSE:
                state[2] = _dense(registers)
    return state


def _dense(registers: dict[int, int]) -> bytearray:
    dense = bytearray(_REGISTERS)
    for register, rank in registers.items():
        dense[register] = rank
    return dense


def hasher(type_: SqlType) -> Callable[[object], int]:
    """The hash of a value of the type, as an unsigned 32-bit integer."""
    return _HASHERS.get(base_name(type_), _hash_nested)


def hash_long(value: int) -> int:
    low = (value & _MASK) * _M & _MASK
    low ^= low >> 24
    high = ((value >> 32) & _MASK) * _M & _MASK
    high ^= high >> 24
    h = (low * _M & _MASK) * _M & _MASK ^ (high * _M & _MASK)
    h ^= h >> 13
    h = h * _M & _MASK
    return h ^ (h >> 15)


def hash_bytes(data: bytes) -> int:
    length = len(data)
    h = _MASK ^ length
    whole = length >> 2
    for k in struct.unpack_from(f"<{whole}I", data):
        k = k * _M & _MASK
        k ^= k >> 24
        h = h * _M & _MASK ^ (k * _M & _MASK)
    left = length & 3
    if left:
        # The tail is read from its end, and its bytes are signed: so the original does it.
        for back in range(left, 0, -1):
            byte = data[length - back]
            h ^= ((byte - 256 if byte > 127 else byte) << (8 * (back - 1))) & _MASK
        h = h * _M & _MASK
    h ^= h >> 13
    h = h * _M & _MASK
    return h ^ (h >> 15)


def _hash_double(value: float) -> int:
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return hash_long(bits)


def _hash_string(value: str) -> int:
    return hash_bytes(value.encode("utf-8", "surrogatepass"))


def _hash_boolean(value: bool) -> int:
    return hash_bytes(b"true" if value else b"false")


def _hash_decimal(value: decimal.Decimal) -> int:
    return hash_bytes(str(value).encode())


def _hash_nested(value: object) -> int:
    return hash_bytes(repr(hashable(value)).encode("utf-8", "surrogatepass"))


_HASHERS: dict[str, Callable[[Any], int]] = {
    "INTEGER": hash_long,
    "BIGINT": hash_long,
    "DATE": hash_long,
    "TIME": hash_long,
    "TIMESTAMP": hash_long,
    "DOUBLE": _hash_double,
    "STRING": _hash_string,
    "BYTES": hash_bytes,
    "BOOLEAN": _hash_boolean,
    "DECIMAL": _hash_decimal,
}
