"""Applies migrations: each file's statements one by one, with a record of how it went."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from headrace.cli.migrations.files import MigrationFile, migration, migrations
from headrace.cli.migrations.metadata import NONE, Applied, Metadata, State, require_migrated
from headrace.client import Client, ClientError
from headrace.model.errors import HeadraceError
from headrace.sql import ast
from headrace.sql.parser import parse_statement, split
from headrace.sql.tokens import tokenize
from headrace.sql.variables import substitute, substitute_text

# Statements that answer instead of changing something.
_UNSUPPORTED = frozenset({"DESCRIBE", "EXPLAIN", "SELECT", "PRINT", "SHOW", "LIST"})


@dataclass(frozen=True)
class Target:
    """Which of the migrations to apply; without a version, all that are left."""

    version: int | None = None
    until: int | None = None
    next_only: bool = False


def validate(metadata: Metadata) -> None:
    """Raises unless every applied migration's file is as it was when it was applied."""
    version, next_version = metadata.latest_migrated(), None
    while version != NONE:
        applied = metadata.of(version)
        if next_version is not None:
            require_migrated(applied, next_version)
        file = migration(metadata.config.directory, int(version), metadata.output)
        if file is None:
            raise HeadraceError(
                "No migrations file found for version with status "
                f"{State.MIGRATED}. Version: {version}"
            )
        checksum = file.checksum()
        if checksum != applied.checksum:
            raise HeadraceError(
                f"Migrations file found for version {version} does not match the checksum saved "
                f"for this version. Expected checksum: {applied.checksum}. "
                f"Actual checksum: {checksum}. File name: {file.path}"
            )
        next_version, version = version, applied.previous


def apply(
    metadata: Metadata, target: Target, variables: Mapping[str, str], *, dry_run: bool
) -> None:
    output = metadata.output
    output.line("Validating current migration state before applying new migrations")
    validate(metadata)
    previous = metadata.latest_migrated()
    output.line("Loading migration files")
    chosen = _chosen(metadata, target, previous)
    count = len(chosen)
    output.line(f"{count} migration file(s) loaded." if count else "No eligible migrations found.")
    for file in chosen:
        output.line(f"Applying migration version {file.version}: {file.name}")
        output.line(f"{file.path} contents:\n{file.text()}")
        if dry_run:
            output.line("Dry run complete. No migrations were actually applied.")
            continue
        _apply(metadata, file, previous, variables)
        output.line("Successfully migrated")
        previous = str(file.version)


def _chosen(metadata: Metadata, target: Target, previous: str) -> list[MigrationFile]:
    known = migrations(metadata.config.directory, metadata.output)
    first = 1 if previous == NONE else int(previous) + 1
    if target.version is not None:
        file = next((m for m in known if m.version == target.version), None)
        if file is None:
            raise HeadraceError(f"No migration file with version {target.version} exists.")
        if target.version < first:
            raise HeadraceError(
                "Version must be newer than the last version migrated. "
                f"Last version migrated was {previous}"
            )
        return [file]
    left = [m for m in known if m.version >= first]
    if target.next_only:
        if not left:
            raise HeadraceError("No eligible migrations found.")
        return left[:1]
    return [m for m in left if target.until is None or m.version <= target.until]


def _apply(
    metadata: Metadata, file: MigrationFile, previous: str, variables: Mapping[str, str]
) -> None:
    """Applies one migration and records its outcome, unless the process is killed."""
    running = Applied(
        str(file.version), file.checksum(), previous, State.RUNNING, file.name, _now()
    )
    metadata.write(running)
    try:
        _Run(metadata.client, dict(variables)).all_of(file.text())
    except (HeadraceError, ClientError) as error:
        metadata.write(_ended(running, State.ERROR, str(error)))
        raise
    except BaseException:  # also Ctrl-C: the metadata says how it ended
        metadata.write(_ended(running, State.ERROR, "Interrupted"))
        raise
    metadata.write(_ended(running, State.MIGRATED))


def _ended(running: Applied, state: State, reason: str | None = None) -> Applied:
    ended = replace(running, state=state, completed_on=_now())
    return ended if reason is None else replace(ended, error_reason=reason)


def _now() -> str:
    return str(int(time.time() * 1000))


# ------------------------------------------------------------------------------- statements


@dataclass(frozen=True)
class _Statement:
    """A statement as the file has it, and what it says once its variables are replaced."""

    text: str
    meaning: ast.Statement
    variables: Mapping[str, str]


@dataclass
class _Run:
    """The statements of one file. SET and DEFINE hold to the end of the file."""

    client: Client
    variables: dict[str, str]
    properties: dict[str, object] = field(default_factory=dict)
    last_command: int | None = None

    def all_of(self, text: str) -> None:
        """All are looked at before the first is run."""
        for statement in list(self._parsed(text)):
            try:
                self._execute(statement)
            except ClientError as error:
                raise HeadraceError(
                    f"Failed to execute sql: {statement.text}. Error: {error}"
                ) from None

    def _parsed(self, text: str) -> Iterator[_Statement]:
        for one in split(text):
            try:
                yield self._parse(one.text)
            except HeadraceError as error:
                raise HeadraceError(f"Failed to parse sql: {one.text}. Error: {error}") from None

    def _parse(self, text: str) -> _Statement:
        words = [token.text.upper() for token in tokenize(text).tokens[:2]]
        if words[0] in _UNSUPPORTED:
            raise HeadraceError(f"'{words[0]}' statements are not supported.")
        if words == ["RUN", "SCRIPT"]:
            raise HeadraceError("'RUN SCRIPT' statements are not supported.")
        if not text.endswith(";"):
            raise HeadraceError(f"Unmatched command at end of file; missing semicolon: '{text}'")
        meaning = parse_statement(substitute(text, self.variables))
        match meaning:
            case ast.DefineVariable(name, value):
                self.variables[name] = substitute_text(value, self.variables)
            case ast.UndefineVariable(name):
                self.variables.pop(name, None)
        return _Statement(text, meaning, dict(self.variables))

    def _execute(self, statement: _Statement) -> None:
        match statement.meaning:
            case ast.DefineVariable() | ast.UndefineVariable():
                pass
            case ast.SetProperty(name, value):
                self.properties[name] = value
            case ast.UnsetProperty(name):
                self.properties.pop(name, None)
            case _:
                for entity in self.client.execute(
                    statement.text,
                    properties=self.properties,
                    variables=statement.variables,
                    after=self.last_command,
                ):
                    self.last_command = entity.get("commandSequenceNumber", self.last_command)
