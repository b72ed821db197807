"""SQL types: values that know their own text, as ksqlDB prints them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class SqlType:
    """Any SQL type. Equal types compare equal; `str()` is the text users see."""


@dataclass(frozen=True)
class Primitive(SqlType):
    name: str

    def __str__(self) -> str:
        return self.name


BOOLEAN = Primitive("BOOLEAN")
INTEGER = Primitive("INTEGER")
BIGINT = Primitive("BIGINT")
DOUBLE = Primitive("DOUBLE")
STRING = Primitive("STRING")
BYTES = Primitive("BYTES")
DATE = Primitive("DATE")
TIME = Primitive("TIME")
TIMESTAMP = Primitive("TIMESTAMP")
MILLIS_PER_DAY = 86_400_000  # DATE counts days, TIME and TIMESTAMP milliseconds
EPOCH_DAY = date(1970, 1, 1).toordinal()  # the day 0 of DATE, as Python numbers days
# The type of a bare NULL, which fits everywhere; never the type of a column.
NULL = Primitive("NULL")


@dataclass(frozen=True)
class Decimal(SqlType):
    precision: int
    scale: int

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


# The decimals that hold every value of a type.
EXACT_DECIMALS: dict[SqlType, Decimal] = {INTEGER: Decimal(10, 0), BIGINT: Decimal(19, 0)}


def wider_decimal(left: Decimal, right: Decimal) -> Decimal:
    """The smallest decimal type that holds all values of both."""
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    return Decimal(whole + scale, scale)


@dataclass(frozen=True)
class Array(SqlType):
    element: SqlType

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True)
class Map(SqlType):
    key: SqlType
    value: SqlType

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True)
class Field:
    name: str
    type: SqlType

    def __str__(self) -> str:
        return f"{quote(self.name)} {self.type}"


@dataclass(frozen=True)
class Struct(SqlType):
    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(map(str, self.fields))}>" if self.fields else "STRUCT< >"


@dataclass(frozen=True)
class Lambda(SqlType):
    """The type of a lambda argument of a function; never the type of a column."""

    inputs: tuple[SqlType, ...]
    result: SqlType

    def __str__(self) -> str:
        return f"LAMBDA ({', '.join(map(str, self.inputs))}) => {self.result}"


# The names a type may be written by in SQL, besides its own.
PRIMITIVES: dict[str, Primitive] = {
    "BOOLEAN": BOOLEAN,
    "INT": INTEGER,
    "INTEGER": INTEGER,
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "VARCHAR": STRING,
    "STRING": STRING,
    "BYTES": BYTES,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
}

# Numeric types from narrow to wide; an implicit cast goes only to the right.
NUMERIC_RANK: dict[str, int] = {"INTEGER": 0, "BIGINT": 1, "DECIMAL": 2, "DOUBLE": 3}


def base_name(type_: SqlType) -> str:
    """The type's family, without parameters: `DECIMAL`, `ARRAY`, `STRING`, …"""
    if isinstance(type_, Primitive):
        return type_.name
    return {Decimal: "DECIMAL", Array: "ARRAY", Map: "MAP", Struct: "STRUCT", Lambda: "LAMBDA"}[
        type(type_)
    ]


def is_numeric(type_: SqlType) -> bool:
    return base_name(type_) in NUMERIC_RANK


def walk(type_: SqlType) -> Iterator[SqlType]:
    """The type and every type nested in it, outermost first."""
    yield type_
    match type_:
        case Array(element):
            yield from walk(element)
        case Map(key, value):
            yield from walk(key)
            yield from walk(value)
        case Struct(fields):
            for f in fields:
                yield from walk(f.type)


def quote(name: str) -> str:
    """The name in backquotes, as ksqlDB prints every identifier in a schema."""
    return "`" + name.replace("`", "``") + "`"
