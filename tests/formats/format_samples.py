"""Random schemas, rows and damaged records, the same in every run."""

import json
import math
import random
from decimal import Decimal as Number

from headrace.formats.base import CodecError
from headrace.model.schema import Column
from headrace.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
    base_name,
)

LEAVES = (
    BOOLEAN,
    INTEGER,
    BIGINT,
    DOUBLE,
    STRING,
    BYTES,
    DATE,
    TIME,
    TIMESTAMP,
    Decimal(4, 2),
    Decimal(20, 10),
    Decimal(38, 5),
)
STRINGS = ("", "x", "é😀", "1.5", "-2.0E5", "[1]", '{"a":1}', "true", "a,b", ' "q" ', "12", "#-\n")
NAMES = ("ID", "NAME", "name", "MixedCase", "A_B", "X1")


class Samples:
    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def columns(self, depth: int = 2, single: bool = False):
        count = 1 if single else self.random.randint(2, 5)
        names = self.random.sample(NAMES, count)
        return tuple(Column(name, self.type(depth)) for name in names)

    def type(self, depth: int) -> SqlType:
        kind = self.random.random()
        if depth == 0 or kind < 0.6:
            return self.random.choice(LEAVES)
        if kind < 0.75:
            return Array(self.type(depth - 1))
        if kind < 0.85:
            return Map(STRING, self.type(depth - 1))
        names = self.random.sample(NAMES, self.random.randint(1, 3))
        return Struct(tuple(Field(name, self.type(depth - 1)) for name in names))

    def row(self, columns, nulls: float = 0.1):
        return {c.name: self.value(c.type, nulls) for c in columns}

    def value(self, type_: SqlType, nulls: float = 0.1):
        r = self.random
        if r.random() < nulls:
            return None
        match type_:
            case Array(element):
                return [self.value(element, nulls) for _ in range(r.randint(0, 3))]
            case Map(_, value):
                return {k: self.value(value, nulls) for k in r.sample(STRINGS, r.randint(0, 3))}
            case Struct(fields):
                return {f.name: self.value(f.type, nulls) for f in fields}
            case Decimal(precision, scale):
                digits = r.randint(0, precision)
                unscaled = r.randint(-(10**digits) + 1, 10**digits - 1)
                return Number((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
        return {
            "BOOLEAN": lambda: r.random() < 0.5,
            "INTEGER": lambda: r.choice([0, -1, 2**31 - 1, -(2**31), r.randint(-999, 999)]),
            "BIGINT": lambda: r.choice([0, 2**63 - 1, -(2**63), r.randint(-(10**12), 10**12)]),
            "DOUBLE": lambda: r.choice([0.0, -1.5, 1e7, 1e-5, 123456.789, 1e300, r.random()]),
            "STRING": lambda: r.choice(STRINGS),
            "BYTES": lambda: r.randbytes(r.randint(0, 5)),
            "DATE": lambda: r.randint(-20000, 20000),
            "TIME": lambda: r.randint(0, 86_400_000),
            "TIMESTAMP": lambda: r.randint(-(10**12), 10**13),
        }[base_name(type_)]()

    def damaged(self, data: bytes) -> bytes:
        r = self.random
        at = r.randrange(len(data) + 1)
        return r.choice(
            [
                lambda: data[:at],
                lambda: data[:at] + r.randbytes(1) + data[at + 1 :],
                lambda: r.randbytes(r.randint(0, 12)),
                lambda: data + b"x",
                lambda: b"",
            ]
        )()

    def respelled_json(self, data: bytes) -> bytes:
        """The same document in other words: spellings, quoted numbers, numbers for strings."""
        r = self.random
        style = r.choice([str.lower, str.title, str.upper, lambda s: s])

        def change(node):
            if isinstance(node, dict):
                return {style(k): change(v) for k, v in node.items() if r.random() < 0.9}
            if isinstance(node, list):
                return [change(x) for x in node]
            swap = r.random()
            if isinstance(node, bool) or swap > 0.15:
                return node
            if isinstance(node, str):
                return r.choice([1.50, 7, [1, "x"], {"y": [1.0, None]}, True, None, "1.25", "5"])
            return r.choice([str(node), 1.5, None, 2**40, [node]])

        indent = r.choice([None, 1])
        return json.dumps(
            change(json.loads(data)), ensure_ascii=r.random() < 0.5, indent=indent
        ).encode()


def outcome(decode, data):
    """The row or the error's text, in a form that compares."""
    try:
        return comparable(decode(data)), None
    except CodecError as e:
        return None, e.message


def comparable(value):
    """Numbers by their text, so that NaN equals itself; structs and maps as dicts."""
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [comparable(v) for v in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, Number):
        return str(value.normalize())
    return bytes(value) if isinstance(value, bytearray) else value
