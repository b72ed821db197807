"""Registered schemas, and the registry's errors in Confluent's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from headrace.model.errors import HeadraceError
from headrace.schemas import SchemaType


@dataclass(frozen=True)
class Reference:
    """A schema that another one uses under a name."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    text: str
    type: SchemaType = "AVRO"
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema with its place in the registry."""

    subject: str
    version: int
    id: int
    text: str
    type: SchemaType = "AVRO"
    references: tuple[Reference, ...] = ()

    @property
    def schema(self) -> Schema:
        return Schema(self.text, self.type, self.references)


class RegistryError(HeadraceError):
    """A refusal of the registry: its HTTP status, Confluent's error code, a text."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> int:
        return self.code if self.code < 1000 else self.code // 100


def schema_type(name: object) -> SchemaType:
    """The type of that name; Avro if there is none, as the registry leaves it out then."""
    if name is None:
        return "AVRO"
    for known in get_args(SchemaType):
        if isinstance(name, str) and name.upper() == known:
            found: SchemaType = known
            return found
    raise RegistryError(42201, f"Invalid schema type {name}")


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(id_: int | None = None) -> RegistryError:
    return RegistryError(40403, "Schema not found" if id_ is None else f"Schema {id_} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
    )


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        40405, f"Subject '{subject}' was not deleted first before being permanently deleted"
    )


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted. "
        "Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently "
        "deleted",
    )


def no_subject_config(subject: str) -> RegistryError:
    return RegistryError(
        40408, f"Subject '{subject}' does not have subject-level compatibility configured"
    )


def no_subject_mode(subject: str) -> RegistryError:
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def invalid_schema(schema: Schema, details: str) -> RegistryError:
    references = ", ".join(f"{r.name}={r.subject}:{r.version}" for r in schema.references)
    return RegistryError(
        42201,
        f"Invalid schema {schema.text} with refs [{references}] of type {schema.type}, "
        f"details: {details}",
    )


def invalid_version(version: str) -> RegistryError:
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between "
        '[1, 2^31-1] and the string "latest"',
    )


def invalid_level() -> RegistryError:
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def invalid_mode() -> RegistryError:
    return RegistryError(
        42204, "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, and IMPORT"
    )


def not_permitted(details: str) -> RegistryError:
    return RegistryError(42205, details)


def reference_exists(subject: str, version: int) -> RegistryError:
    return RegistryError(
        42206, f"One or more references exist to the schema {{subject={subject},version={version}}}"
    )


def incompatible(subject: str, details: str) -> RegistryError:
    return RegistryError(
        409,
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: {details}',
    )
