"""The configuration of a migrations project, under ksqlDB's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.cli.properties import read_properties
from headrace.client import Client
from headrace.model.errors import HeadraceError

CONFIG_FILE = "ksql-migrations.properties"
MIGRATIONS_DIR = "migrations"
SERVER_URL = "ksql.server.url"

# What a new project's file holds besides the server, by heading; all of it is commented out.
OPTIONAL: Mapping[str, Mapping[str, str]] = {
    "Migrations metadata configs": {
        "ksql.migrations.stream.name": "MIGRATION_EVENTS",
        "ksql.migrations.table.name": "MIGRATION_SCHEMA_VERSIONS",
        "ksql.migrations.stream.topic.name": "ksql-service-idksql_MIGRATION_EVENTS",
        "ksql.migrations.table.topic.name": "ksql-service-idksql_MIGRATION_SCHEMA_VERSIONS",
        "ksql.migrations.topic.replicas": "1",
    },
    "TLS configs": {
        "ssl.truststore.location": "",
        "ssl.verify.host": "true",
    },
    "ksqlDB server authentication configs": {
        "ksql.auth.basic.username": "",
        "ksql.auth.basic.password": "",
    },
    "Migrations directory configs": {
        "ksql.migrations.dir.override": "",
    },
}
_DEFAULTS = {name: value for part in OPTIONAL.values() for name, value in part.items()}


def initial_config(url: str) -> str:
    """The text of a new project's configuration."""
    parts = [f"{SERVER_URL}={url}"]
    for heading, names in OPTIONAL.items():
        lines = "\n".join(f"# {name}={value}" for name, value in names.items())
        parts.append(f"# {heading}:\n{lines}")
    return "\n\n".join(parts) + "\n"


@dataclass(frozen=True)
class Config:
    """What the file of a project says, and where the project is."""

    file: Path
    values: Mapping[str, str]

    @staticmethod
    def load(file: Path) -> Config:
        values = read_properties(file)
        if not values.get(SERVER_URL):
            raise HeadraceError(f"Missing required property: {SERVER_URL}")
        return Config(file, values)

    def __getitem__(self, name: str) -> str:
        return self.values.get(name) or _DEFAULTS[name]

    @property
    def stream(self) -> str:
        return self["ksql.migrations.stream.name"]

    @property
    def table(self) -> str:
        return self["ksql.migrations.table.name"]

    def topic(self, kind: str, service_id: str) -> str:
        """The topic of the metadata `stream` or `table`."""
        given = self.values.get(f"ksql.migrations.{kind}.topic.name")
        return given or f"{service_id}ksql_{self[f'ksql.migrations.{kind}.name']}"

    @property
    def directory(self) -> Path:
        override = self["ksql.migrations.dir.override"]
        return Path(override) if override else self.file.parent / MIGRATIONS_DIR

    def connect(self, headers: Mapping[str, str] | None = None) -> Client:
        user, password = self["ksql.auth.basic.username"], self["ksql.auth.basic.password"]
        trusted = self["ssl.truststore.location"]
        verify = self["ssl.verify.host"].lower() != "false"
        return Client(
            self.values[SERVER_URL],
            user=user or None,
            password=password,
            verify=trusted if trusted and verify else verify,
            headers=headers or {},
        )
