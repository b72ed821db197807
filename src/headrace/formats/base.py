"""The interface of a format: codecs between the columns of one side of a record and bytes.

Each format has two codecs that agree: `python` for single rows (INSERT VALUES, PRINT, pull queries,
tests) and `spark` for pipelines. Neither raises anything but CodecError on bad data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Literal

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from headrace.formats.connect import Shape, infer_columns
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.fallible import Fallible
from headrace.model.schema import Column
from headrace.model.types import Field, SqlType, Struct
from headrace.schemas import SchemaType

Side = Literal["key", "value"]
# A row of one side in plain Python (see headrace.model.representation), by column name.
Row = dict[str, object]
# How PRINT shows data; anything that is raised means that the data is of another format.
Show = Callable[[bytes], str]


class Feature(Enum):
    """Capabilities of a format: single fields wrapped or unwrapped (KLIP-3), schema inference."""

    WRAP = "WRAP_SINGLES"
    UNWRAP = "UNWRAP_SINGLES"
    INFERENCE = "SCHEMA_INFERENCE"


# How a format's own properties are spelled in WITH, after `KEY_` or `VALUE_`, and what they are
# called inside (ksqlDB's names, which its error texts show).
WITH_PROPERTIES: dict[str, str] = {
    "DELIMITER": "delimiter",
    "AVRO_SCHEMA_FULL_NAME": "fullSchemaName",
    "SCHEMA_FULL_NAME": "fullSchemaName",
    "SCHEMA_ID": "schemaId",
    "PROTOBUF_NULLABLE_REPRESENTATION": "nullableRepresentation",
}


@dataclass(frozen=True)
class RegistrySchema:
    """A schema as the registry keeps it; `references` are the texts it imports, by name."""

    text: str
    type: SchemaType
    references: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Layout:
    """How one side of a source's records lies in its topic: all that a codec needs to know.

    `wrapped` says whether a single column lies in an envelope; many columns always do. For
    registry formats, `writers` are the schemas that records may bear, by id; `schema_id` is the
    id that written records bear, of the schema `physical` (where that is not the format's own
    rendering of the columns, because the statement named a schema). `unread` columns are there in
    the record, and what is wrong with them is to be told, but nobody looks at their values.
    """

    columns: tuple[Column, ...]
    wrapped: bool = True
    side: Side = "value"
    topic: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    writers: tuple[tuple[int, RegistrySchema], ...] = ()
    schema_id: int | None = None
    physical: RegistrySchema | None = None
    unread: frozenset[str] = frozenset()

    def option(self, name: str) -> str | None:
        """A property of the format, by its inner name."""
        return dict(self.properties).get(name)

    @property
    def struct(self) -> Struct:
        """The columns as one type, which is also the type of a decoded row."""
        return Struct(tuple(Field(c.name, c.type) for c in self.columns))

    @property
    def type(self) -> SqlType:
        """The type of what lies in the record: the row, or the one bare column."""
        return self.struct if self.wrapped else self.columns[0].type


class CodecError(HeadraceError):
    """Data that cannot be read or written. The first line is the message, the others are causes."""


class DecodeError(CodecError):
    pass


class EncodeError(CodecError):
    pass


class RowCodec(ABC):
    """Single rows of one layout, in Python."""

    @abstractmethod
    def decode(self, data: bytes | None) -> Row | None: ...

    @abstractmethod
    def encode(self, row: Row | None) -> bytes | None: ...


class ColumnCodec(ABC):
    """Columns of one layout, in Spark.

    Values are a struct of the columns; null data is a null struct and the other way round.
    """

    @abstractmethod
    def decode(self, data: SparkColumn) -> Fallible:
        """Bytes to rows, as one expression. Prefer `read`, which evaluates shared parts once."""

    @abstractmethod
    def encode(self, row: SparkColumn) -> Fallible: ...

    def read(self, frame: DataFrame, data: str, value: str, error: str) -> DataFrame:
        """The frame with two more columns: the rows decoded from column `data`, and errors."""
        decoded = self.decode(frame[f"`{data}`"])
        return frame.withColumns({value: decoded.value, error: text_or_null(decoded.error)})

    def read_natively(self, frame: DataFrame, data: str, value: str, doubt: str) -> DataFrame:
        """As `read`, but without Python where the format can. `doubt` is whether a record would
        need it, or cannot be read at all: then its value is not to be used."""
        from pyspark.sql import functions as F

        decoded = self.decode(frame[f"`{data}`"])
        if decoded.error is None:
            return frame.withColumns({value: decoded.value, doubt: F.lit(False)})
        read = self.read(frame, data, value, doubt)
        return read.withColumn(doubt, F.col(f"`{doubt}`").isNotNull())


def text_or_null(error: SparkColumn | None) -> SparkColumn:
    from pyspark.sql import functions as F

    return F.lit(None).cast("string") if error is None else error


class Format(ABC):
    """A format: its declaration, its checks, its two codecs."""

    name: ClassVar[str]
    features: ClassVar[frozenset[Feature]] = frozenset()
    properties: ClassVar[frozenset[str]] = frozenset()
    inheritable: ClassVar[frozenset[str]] = frozenset()
    # Whether it holds structured values, as the states of some aggregates are in ksqlDB.
    structured: ClassVar[bool] = True
    # Whether the bytes of keys are in the order of the keys.
    ordered_keys: ClassVar[bool] = False
    # Why values of this format cannot be grouped or joined, if they cannot.
    not_grouped: ClassVar[str] = ""

    def supports(self, feature: Feature) -> bool:
        return feature in self.features

    @property
    def wraps_or_not(self) -> bool:
        """Whether single fields can lie either way."""
        return self.supports(Feature.WRAP) and self.supports(Feature.UNWRAP)

    def wrapped(self, columns: int, wrap: bool | None) -> bool:
        """Whether this many columns lie in an envelope, given the setting in force."""
        if columns != 1:
            return True
        choices = self.features & {Feature.WRAP, Feature.UNWRAP}
        if len(choices) == 1:
            return Feature.WRAP in choices
        return wrap is not False

    def default_properties(self, side: Side, source: str) -> Mapping[str, str]:
        """Properties that hold where a statement that makes `source` does not say otherwise."""
        return {}

    def shows(self) -> Mapping[str, Show]:
        """How PRINT shows data that may be of this format, by what it then calls the format."""
        return {}

    def check_properties(self, properties: Mapping[str, str]) -> None:
        unknown = [name for name in properties if name not in self.properties]
        if unknown:
            raise StatementError(
                f"{self.name} does not support the following configs: [{', '.join(unknown)}]"
            )
        for name, value in properties.items():
            if not value.strip():
                texts = ", ".join(f"{k}={v}" for k, v in properties.items())
                raise StatementError(f"{name} cannot be empty. Format configuration: {{{texts}}}")

    def check(
        self,
        columns: Sequence[Column],
        side: Side,
        wrap: bool | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Refuses properties and columns that the format cannot hold, in ksqlDB's words."""
        properties = properties or {}
        self.check_properties(properties)
        try:
            self.check_columns(columns, side, properties)
        except StatementError as e:
            texts = ", ".join(map(str, columns))
            feature = Feature.WRAP if wrap else Feature.UNWRAP
            shown = wrap is not None and len(columns) == 1 and self.supports(feature)
            raise StatementError(
                f"{side.capitalize()} format does not support schema.\n"
                f"format: {self.name}\n"
                f"schema: Persistence{{columns=[{texts}], "
                f"features=[{feature.value if shown else ''}]}}\n"
                f"reason: {e.message}"
            ) from e

    def check_columns(
        self, columns: Sequence[Column], side: Side, properties: Mapping[str, str]
    ) -> None:
        """Raises StatementError with the bare reason; `check` says the rest."""
        return

    @abstractmethod
    def python(self, layout: Layout) -> RowCodec: ...

    @abstractmethod
    def spark(self, layout: Layout) -> ColumnCodec: ...


class RegistryFormat(Format):
    """A format whose schemas live in the registry."""

    schema_type: ClassVar[SchemaType]

    @abstractmethod
    def show(self, schema: RegistrySchema) -> Show:
        """How PRINT shows what comes after the header of records of the schema."""

    @abstractmethod
    def to_registry(self, layout: Layout) -> RegistrySchema:
        """The schema that ksqlDB registers for such columns."""

    @abstractmethod
    def shape(self, schema: RegistrySchema, properties: Mapping[str, str]) -> Shape:
        """What a registered schema says, in the terms of Connect; ValueError where it is broken."""

    def is_record(self, schema: RegistrySchema, properties: Mapping[str, str]) -> bool:
        """Whether the schema has fields. A broken one counts as such: reading it tells more."""
        try:
            return self.shape(schema, properties).kind == "struct"
        except ValueError:
            return True

    def columns_from_registry(
        self,
        schema: RegistrySchema,
        side: Side,
        wrapped: bool,
        properties: Mapping[str, str],
        *,
        keep_case: bool = False,
    ) -> list[Field]:
        """The columns that ksqlDB infers; a bare value is one column, ROWKEY or ROWVAL.

        Names are upper-cased unless `keep_case`, which statements that name a schema id ask for.
        """
        try:
            shape = self.shape(schema, properties)
        except ValueError as e:
            raise StatementError(str(e)) from e
        bare = None if wrapped else "ROWKEY" if side == "key" else "ROWVAL"
        return infer_columns(shape, bare, keep_case=keep_case)
