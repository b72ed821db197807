"""JSON records of ten fields, of which one, three or all are read, beside Spark's own `from_json`.

The records are in memory, and nothing is done with what is read: what is left is the reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.bench.figures import BY_HAND, HEADRACE, Row, samples
from headrace.bench.measures import Measure, Run
from headrace.bench.workloads.functions import seconds_of
from headrace.formats.base import Layout
from headrace.formats.json.columns import JsonColumns
from headrace.model import schema
from headrace.model.representation import spark_type
from headrace.model.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Field,
    SqlType,
    Struct,
)

_ADDRESS = Struct((Field("STREET", STRING), Field("ZIP", INTEGER)))
# The fields, their types, and how they are made of a record's number: texts have 20 characters.
FIELDS: dict[str, tuple[SqlType, str]] = {
    "ID": (BIGINT, "id"),
    "ORDER_NO": (STRING, "lpad(id, 20, 'order-0000000000000')"),
    "CUSTOMER": (STRING, "lpad(id % 5000, 20, 'customer-00000000000')"),
    "CITY": (STRING, "lpad(id % 300, 20, 'Saint-Something-upon')"),
    "AMOUNT": (DOUBLE, "id % 50000 / 8.0D"),
    "RATE": (DOUBLE, "id % 1000 / 1000.0D"),
    "PAID": (BOOLEAN, "id % 3 = 0"),
    "ADDRESS": (_ADDRESS, "struct(lpad(id, 20, 'street-') STREET, INT(id % 99999) ZIP)"),
    "CREATED": (TIMESTAMP, "1700000000000 + id * 1000"),
    "NOTE": (STRING, "lpad(id % 77, 20, 'please ring the bell')"),
}  # fmt: skip
READ = {1: ("AMOUNT",), 3: ("ID", "CUSTOMER", "AMOUNT"), 10: tuple(FIELDS)}


def records(run: Run) -> DataFrame:
    """The column `value`, as Kafka has it."""
    made = F.to_json(F.struct(*(F.expr(text).alias(name) for name, (_, text) in FIELDS.items())))
    numbers = run.at.spark.range(0, run.records, 1, run.at.spark.sparkContext.defaultParallelism)
    kept = numbers.select(made.cast("binary").alias("value")).persist()
    kept.count()
    return kept


def by_headrace(frame: DataFrame, read: Sequence[str]) -> DataFrame:
    """As a query reads them that looks at these fields, and whether it may rely on that."""
    columns = tuple(schema.Column(name, type_) for name, (type_, _) in FIELDS.items())
    codec = JsonColumns("JSON", Layout(columns, unread=frozenset(FIELDS) - set(read)))
    return codec.read_natively(frame, "value", "v", "doubt").select(*_picked(read), "doubt")


def by_hand(frame: DataFrame, read: Sequence[str]) -> DataFrame:
    whole = Struct(tuple(Field(name, type_) for name, (type_, _) in FIELDS.items()))
    value = F.from_json(F.col("value").cast("string"), spark_type(whole).simpleString())
    return frame.select(value.alias("v")).select(*_picked(read))


def _picked(read: Sequence[str]) -> list[Column]:
    return [F.col(f"v.{name}") for name in read]


def _json_fields(run: Run) -> Iterator[Row]:
    frame = records(run)
    for count, read in READ.items():
        forms = {HEADRACE: by_headrace(frame, read), BY_HAND: by_hand(frame, read)}
        rates: dict[str, list[float]] = {side: [] for side in forms}
        for i in range(run.repeats + 1):
            for side, form in forms.items():
                seconds = seconds_of(form)
                if i:  # the first turn warms up
                    rates[side].append(run.records / seconds)
        title = f"JSON records of ten fields, {count} read"
        cells = {side: samples(values) for side, values in rates.items()}
        yield Row(f"json-{count}-of-10", title, "records/s", cells, records=run.records)
    frame.unpersist()


MEASURES = (Measure("json-fields", "JSON records of ten fields", _json_fields, 500_000),)
