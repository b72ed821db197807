"""NONE: the format of a side without columns, whose bytes are ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from headrace.formats.base import ColumnCodec, Format, Layout, Row, RowCodec, Side
from headrace.model.errors import StatementError
from headrace.model.fallible import Fallible
from headrace.model.representation import spark_type
from headrace.model.schema import Column


class NoneFormat(Format):
    name = "NONE"

    def check_columns(
        self, columns: Sequence[Column], side: Side, properties: Mapping[str, str]
    ) -> None:
        if columns:
            raise StatementError(
                "The 'NONE' format can only be used when no columns are defined. "
                f"Got: [{', '.join(map(str, columns))}]"
            )

    def python(self, layout: Layout) -> RowCodec:
        return VoidRows()

    def spark(self, layout: Layout) -> ColumnCodec:
        return VoidColumns(layout)


class VoidRows(RowCodec):
    """The row codec of a side without columns."""

    def decode(self, data: bytes | None) -> Row | None:
        return None

    def encode(self, row: Row | None) -> bytes | None:
        return None


class VoidColumns(ColumnCodec):
    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def decode(self, data: SparkColumn) -> Fallible:
        return Fallible(F.lit(None).cast(spark_type(self._layout.struct)))

    def encode(self, row: SparkColumn) -> Fallible:
        return Fallible(F.lit(None).cast("binary"))
