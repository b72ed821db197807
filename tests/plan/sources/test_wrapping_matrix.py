"""KLIP-3's test plan, generated: every combination is planned, and gives the expected bytes.

Format × both settings × source type × source key and value × WITH on source and on query × query
type × query key and value. A fixed sample runs always, the whole in the heavy suite.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import fastavro
import pytest

from headrace.formats import FORMATS
from headrace.formats.base import Layout, RegistryFormat, RowCodec, Side
from headrace.model.errors import StatementError
from headrace.model.schema import Column
from headrace.model.sources import Serde, Source
from headrace.plan.query import plan_create_as
from headrace.plan.sources.ddl import plan_create_source
from headrace.sql import ast
from headrace.sql.parser import parse_statement
from plan_catalog import Catalog
from wrap_properties import VALID, WRAPS, Wraps

SCHEMA_ID = 3


@dataclass(frozen=True)
class Combination:
    format: str
    key_setting: bool
    value_setting: bool
    source_kind: str
    source_keys: int
    source_values: int
    source_wraps: Wraps
    query_kind: str
    query_wraps: Wraps
    query_keys: int
    query_values: int

    @property
    def source(self) -> str:
        key = "KEY" if self.source_kind == "STREAM" else "PRIMARY KEY"
        columns = [f"K{i} INT {key}" for i in range(self.source_keys)]
        columns += [f"V{i} INT" for i in range(self.source_values)]
        return (
            f"CREATE {self.source_kind} S ({', '.join(columns)}) WITH (KAFKA_TOPIC='s', "
            f"FORMAT='{self.format}'{self._more(self.source_wraps)});"
        )

    @property
    def query(self) -> str:
        """Keys are made anew: by PARTITION BY for a stream, by GROUP BY for a table."""
        keys = ("K0", "K1" if self.source_keys > 1 else "V0")[: self.query_keys]
        stream = self.query_kind == "STREAM"
        made = "7" if stream else "COUNT(*)"
        values = [f"{made} AS R{i}" for i in range(self.query_values)]
        return (
            f"CREATE {self.query_kind} R WITH (KAFKA_TOPIC='r'{self._more(self.query_wraps)}) AS "
            f"SELECT {', '.join([*keys, *values])} FROM S "
            f"{'PARTITION' if stream else 'GROUP'} BY {', '.join(keys)};"
        )

    @staticmethod
    def _more(wraps: Wraps) -> str:
        return f", {wraps.text}" if wraps.text else ""

    def source_setting(self, side: Side) -> bool:
        setting = self.key_setting if side == "key" else self.value_setting
        own = self.source_wraps.of(side)
        return setting if own is None else own

    def query_setting(self, side: Side) -> bool:
        own = self.query_wraps.of(side)
        return self.source_setting(side) if own is None else own


# A table cannot become a stream.
KINDS = (("STREAM", "STREAM"), ("STREAM", "TABLE"), ("TABLE", "TABLE"))


def combinations(
    source_wraps: tuple[Wraps, ...], query_wraps: tuple[Wraps, ...]
) -> Iterator[Combination]:
    for format_, keys, values, kinds, source_keys, source_values in itertools.product(
        ("JSON", "AVRO"), (True, False), (True, False), KINDS, (1, 2), (1, 2)
    ):
        for on_source, on_query in itertools.product(source_wraps, query_wraps):
            for query_keys, query_values in itertools.product((1, 2), (1, 2)):
                yield Combination(
                    format_,
                    keys,
                    values,
                    kinds[0],
                    source_keys,
                    source_values,
                    on_source,
                    kinds[1],
                    on_query,
                    query_keys,
                    query_values,
                )


parsed = cache(parse_statement)


def planned(combination: Combination) -> tuple[Source, Source]:
    settings = {
        "ksql.persistence.wrap.single.keys": str(combination.key_setting).lower(),
        "ksql.persistence.wrap.single.values": str(combination.value_setting).lower(),
    }
    catalog = Catalog()
    source_statement, query_statement = parsed(combination.source), parsed(combination.query)
    assert isinstance(source_statement, ast.CreateSource)
    assert isinstance(query_statement, ast.CreateAsSelect)
    source = plan_create_source(source_statement, catalog, settings)
    catalog.known[source.name] = source
    sink = plan_create_as(query_statement, catalog, settings).sink
    assert sink is not None
    return source, sink


@cache
def codec(serde: Serde, columns: tuple[Column, ...], side: Side) -> RowCodec:
    format_ = FORMATS[serde.format]
    wrapped = format_.wrapped(len(columns), serde.wrap)
    layout = Layout(columns, wrapped, side, "t", properties=serde.properties, schema_id=SCHEMA_ID)
    return format_.python(layout)


@cache
def expected_bytes(
    serde: Serde, columns: tuple[Column, ...], side: Side, setting: bool
) -> tuple[dict[str, object], bytes]:
    """A row, and what the rules say of it: one bare value, or a record with names."""
    row: dict[str, object] = {c.name: 10 + i for i, c in enumerate(columns)}
    bare = len(columns) == 1 and not setting
    value = next(iter(row.values())) if bare else row
    if serde.format == "JSON":
        return row, json.dumps(value, separators=(",", ":")).encode()
    format_ = FORMATS[serde.format]
    assert isinstance(format_, RegistryFormat)
    layout = Layout(columns, not bare, side, "t", properties=serde.properties)
    schema = json.loads(format_.to_registry(layout).text)
    assert (schema == "int" or schema == "long") is bare
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, schema, value)
    return row, b"\0" + SCHEMA_ID.to_bytes(4, "big") + buffer.getvalue()


def check(combination: Combination) -> None:
    source, sink = planned(combination)
    ends = ((source, combination.source_setting), (sink, combination.query_setting))
    for end, setting in ends:
        sides: tuple[tuple[Side, Serde, tuple[Column, ...]], ...] = (
            ("key", end.key, end.schema.key),
            ("value", end.value, end.schema.value),
        )
        for side, serde, columns in sides:
            row, data = expected_bytes(serde, columns, side, setting(side))
            codec_ = codec(serde, columns, side)
            assert codec_.encode(row) == data, (combination, end.name, side)
            assert codec_.decode(data) == row, (combination, end.name, side)


def test_a_sample_of_the_valid_combinations():
    for combination in itertools.islice(combinations(VALID, VALID), 0, None, 47):
        check(combination)


@pytest.mark.heavy
def test_all_valid_combinations():
    for combination in combinations(VALID, VALID):
        check(combination)


def test_all_invalid_combinations():
    invalid = tuple(wraps for wraps in WRAPS if not wraps.is_valid)
    pairs = [(wraps, Wraps()) for wraps in invalid] + [(Wraps(), wraps) for wraps in invalid]
    for on_source, on_query in pairs:
        for combination in itertools.islice(combinations((on_source,), (on_query,)), 0, None, 5):
            with pytest.raises(StatementError, match="Duplicate setting: 'WRAP_SINGLE_"):
                planned(combination)
