"""Migration metadata on the server: a stream of events, and a table with the last event of each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from headrace.cli.migrations.config import Config
from headrace.cli.output import Output
from headrace.client import Client, ClientError
from headrace.client.wire import Json
from headrace.model.errors import HeadraceError

NONE = "<none>"
CURRENT = "CURRENT"
NOT_KNOWN = "N/A"
PATIENCE_SECONDS = 60.0  # for the table to show what was written to the stream
_FIELDS = (
    "version",
    "checksum",
    "previous",
    "state",
    "name",
    "started_on",
    "completed_on",
    "error_reason",
)


class State(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    MIGRATED = "MIGRATED"
    ERROR = "ERROR"


@dataclass(frozen=True)
class Applied:
    """A migration as the metadata has it; times are milliseconds in text, or empty."""

    version: str
    checksum: str
    previous: str
    state: State
    name: str
    started_on: str
    completed_on: str = ""
    error_reason: str = NOT_KNOWN

    def cells(self) -> Sequence[str]:
        """As `info` shows it."""
        return (
            self.version,
            self.name,
            self.state,
            self.previous,
            _time(self.started_on),
            _time(self.completed_on),
            self.error_reason,
        )


def _time(milliseconds: str) -> str:
    if not milliseconds.isdecimal():
        return milliseconds
    moment = datetime.fromtimestamp(int(milliseconds) / 1000).astimezone()
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} {moment:%Z}"


class Metadata:
    """The stream and table of one project on one server."""

    def __init__(self, config: Config, client: Client, output: Output) -> None:
        self.config = config
        self.client = client
        self.output = output

    # ----------------------------------------------------------------------- the sources

    def initialize(self) -> None:
        service = str(self._info()["ksqlServiceId"])
        self.output.line("Initializing migrations metadata")
        self._create("stream", self.config.stream, self._stream_statement(service))
        self._create("table", self.config.table, self._table_statement(service))
        self.output.line("Migrations metadata initialized successfully")

    def _info(self) -> Json:
        try:
            return self.client.info()
        except ClientError as error:
            raise HeadraceError(f"Failed to query {self.client.url}/info: {error}") from None

    def _create(self, kind: str, name: str, statement: str) -> None:
        self.output.line(f"Creating {kind}: {name}")
        try:
            self.client.execute(statement)
        except ClientError as error:
            raise HeadraceError(f"Failed to create {kind} {name}: {error}") from None

    def _stream_statement(self, service: str) -> str:
        return (
            f"CREATE STREAM {self.config.stream} (version_key STRING KEY, version STRING,"
            " name STRING, state STRING, checksum STRING, started_on STRING,"
            " completed_on STRING, previous STRING, error_reason STRING)"
            f" WITH (KAFKA_TOPIC='{self.config.topic('stream', service)}', VALUE_FORMAT='JSON',"
            f" PARTITIONS=1, REPLICAS={self.config['ksql.migrations.topic.replicas']});"
        )

    def _table_statement(self, service: str) -> str:
        latest = ", ".join(f"LATEST_BY_OFFSET({name}) AS {name}" for name in _FIELDS)
        return (
            f"CREATE TABLE {self.config.table}"
            f" WITH (KAFKA_TOPIC='{self.config.topic('table', service)}')"
            f" AS SELECT version_key, {latest} FROM {self.config.stream} GROUP BY version_key;"
        )

    def check(self) -> None:
        """Raises unless the metadata is there."""
        for kind, name in (("stream", self.config.stream), ("table", self.config.table)):
            try:
                self.client.describe(name)
            except ClientError as error:
                raise HeadraceError(
                    f"Failed to verify existence of migrations metadata {kind} '{name}'. Did you "
                    f"run `headrace migrations initialize-metadata`? Error message: {error}"
                ) from None

    def destroy(self) -> None:
        self.output.line("Cleaning migrations metadata stream and table from ksqlDB server")
        if _is_missing(self.config.table, self.client.tables()):
            self.output.line("Metadata table does not exist. Skipping cleanup.")
        else:
            self._terminate_writer()
            self._drop("table", self.config.table)
        if _is_missing(self.config.stream, self.client.streams()):
            self.output.line("Metadata stream does not exist. Skipping cleanup.")
        else:
            self._drop("stream", self.config.stream)
        self.output.line("Migrations metadata cleaned successfully")

    def _terminate_writer(self) -> None:
        writers = [q["id"] for q in self.client.describe(self.config.table)["writeQueries"]]
        if not writers:
            self.output.line("Found 0 queries writing to the metadata table")
            return
        if len(writers) > 1:
            raise HeadraceError(
                "Found multiple queries writing to the metadata table. Query IDs: "
                + "', '".join(writers).join("''")
                + "."
            )
        (query,) = writers
        self.output.line(f"Found 1 query writing to the metadata table. Query ID: {query}")
        self.output.line(f"Terminating query with ID: {query}")
        try:
            self.client.execute(f"TERMINATE {query};")
        except ClientError as error:
            raise HeadraceError(
                "Failed to terminate query populating metadata table. "
                f"Query ID: {query}. Error: {error}"
            ) from None

    def _drop(self, kind: str, name: str) -> None:
        self.output.line(f"Dropping migrations metadata {kind}: {name}")
        try:
            self.client.execute(f"DROP {kind.upper()} {name} DELETE TOPIC;")
        except ClientError as error:
            raise HeadraceError(f"Failed to drop metadata {kind} '{name}': {error}") from None

    # ------------------------------------------------------------------------- the state

    def current(self) -> str:
        """The version that was applied or tried last."""
        try:
            rows = self.client.pull(
                f"SELECT version FROM {self.config.table} WHERE version_key = '{CURRENT}';"
            )
        except ClientError as error:
            raise HeadraceError(f"Could not query {self.config.table}: {error}") from None
        return str(rows[0][0]) if rows else NONE

    def find(self, version: str) -> Applied | None:
        try:
            rows = self.client.pull(
                f"SELECT {', '.join(_FIELDS)} FROM {self.config.table}"
                f" WHERE version_key = '{version}';"
            )
        except ClientError as error:
            raise HeadraceError(
                f"Failed to query state for migration with version {version}: {error}"
            ) from None
        if not rows:
            return None
        version, checksum, previous, state, *rest = rows[0].values
        return Applied(version, checksum, previous, State(state), *rest)

    def of(self, version: str) -> Applied:
        found = self.find(version)
        if found is None:
            raise HeadraceError(
                f"Failed to query state for migration with version {version}: no such migration is "
                "present in the migrations metadata table"
            )
        return found

    def latest_migrated(self) -> str:
        """The last version that was applied completely."""
        current = self.current()
        if current == NONE:
            return NONE
        found = self.of(current)
        if found.state is State.MIGRATED:
            return current
        if found.previous != NONE:
            require_migrated(self.of(found.previous), current)
        return found.previous

    def write(self, applied: Applied) -> None:
        """Records a state, and returns when the table shows it."""
        for key in (CURRENT, applied.version):
            self.client.insert(
                self.config.stream,
                {
                    "VERSION_KEY": key,
                    "VERSION": applied.version,
                    "NAME": applied.name,
                    "STATE": applied.state.value,
                    "CHECKSUM": applied.checksum,
                    "STARTED_ON": applied.started_on,
                    "COMPLETED_ON": applied.completed_on,
                    "PREVIOUS": applied.previous,
                    "ERROR_REASON": applied.error_reason,
                },
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.find(applied.version) != applied or self.find(CURRENT) != applied:
            if time.monotonic() > deadline:
                raise HeadraceError(f"Failed to verify status of version {applied.version}")
            time.sleep(0.1)


def _is_missing(name: str, sources: Sequence[Json]) -> bool:
    return name.strip("`").upper() not in {source["name"].upper() for source in sources}


def require_migrated(applied: Applied, next_version: str) -> None:
    if applied.state is not State.MIGRATED:
        raise HeadraceError(
            f"Discovered version with previous version that does not have status "
            f"{State.MIGRATED}. Version: {next_version}. Previous version: {applied.version}. "
            f"Previous version status: {applied.state}"
        )
