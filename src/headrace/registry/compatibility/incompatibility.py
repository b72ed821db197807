"""Incompatibilities between schemas, worded as Confluent's registry does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Incompatibility:
    """One reason why a reader's schema does not fit data of a writer's: its kind, and where."""

    kind: str
    path: str
    info: str = ""

    def describe(self, reader: str, writer: str) -> str:
        """In the registry's words; `reader` and `writer` are "new" and "old" or the reverse."""
        text = TEXTS.get(self.kind, OTHERWISE).format(
            path=self.path, info=self.info, reader=reader, writer=writer
        )
        info = f", additionalInfo:'{self.info}'" if self.info else ""
        return f"{{errorType:'{self.kind}', description:'{text}'{info}}}"


OTHERWISE = "The {reader} schema differs from the {writer} schema at path '{path}'"
TEXTS = {
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "TYPE_MISMATCH": "The type (path '{path}') of a field in the {reader} schema does not match "
    "with the {writer} schema",
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '{path}' in the {reader} schema "
    "does not match with the {writer} schema",
    "MISSING_ENUM_SYMBOLS": "The {reader} schema is missing enum symbols '{info}' at path "
    "'{path}' in the {writer} schema",
    "MISSING_UNION_BRANCH": "The {reader} schema is missing a type inside a union field at path "
    "'{path}' in the {writer} schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{info}' at path '{path}' in the {reader} "
    "schema has no default value and is missing in the {writer} schema",
    "TYPE_NARROWED": "A type at path '{path}' is different between the {reader} schema and the "
    "{writer} schema",
    "TYPE_CHANGED": "A type at path '{path}' is different between the {reader} schema and the "
    "{writer} schema",
    "ENUM_ARRAY_NARROWED": "An array of enums at path '{path}' in the {reader} schema is missing "
    "values of the {writer} schema",
    "REQUIRED_ATTRIBUTE_ADDED": "The {reader} schema has a required attribute at path '{path}' "
    "that the {writer} schema does not require",
    "ADDITIONAL_PROPERTIES_REMOVED": "The {reader} schema does not allow additional properties at "
    "path '{path}', which the {writer} schema allows",
    "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": "The {writer} schema has an open content model and is "
    "missing a property or item at path '{path}' of the {reader} schema",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": "The {reader} schema has a closed content model "
    "and is missing a property or item at path '{path}' of the {writer} schema",
    "SUM_TYPE_NARROWED": "A sum type at path '{path}' in the {reader} schema has fewer "
    "alternatives than in the {writer} schema",
    "MESSAGE_REMOVED": "The {reader} schema is missing a message type at path '{path}' of the "
    "{writer} schema",
    "FIELD_KIND_CHANGED": "The type of a field at path '{path}' in the {reader} schema does not "
    "match the {writer} schema",
    "FIELD_SCALAR_KIND_CHANGED": "The kind of a scalar field at path '{path}' in the {reader} "
    "schema does not match its kind in the {writer} schema",
    "FIELD_NAMED_TYPE_CHANGED": "The type of a message field at path '{path}' in the {reader} "
    "schema does not match its type in the {writer} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label of a field at path '{path}' in the {reader} schema "
    "does not match its label in the {writer} schema",
    "REQUIRED_FIELD_ADDED": "The {reader} schema has a required field at path '{path}' that the "
    "{writer} schema does not have",
    "REQUIRED_FIELD_REMOVED": "The {reader} schema is missing a required field at path '{path}' "
    "of the {writer} schema",
    "ONEOF_FIELD_REMOVED": "The {reader} schema is missing a field at path '{path}' of a oneof of "
    "the {writer} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Multiple fields of the {writer} schema at path '{path}' "
    "are in one oneof of the {reader} schema",
}
