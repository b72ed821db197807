"""The files of a migrations project: `V000001__What_it_does.sql` and so on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from headrace.cli.migrations.config import CONFIG_FILE, MIGRATIONS_DIR, initial_config
from headrace.cli.output import Output
from headrace.model.errors import HeadraceError

LAST_VERSION = 999_999
_NAME = re.compile(r"V([0-9]{6})__(.+)\.sql")
_NOT_IN_NAMES = re.compile(r'[\s/\\:*?"<>|]')


@dataclass(frozen=True)
class MigrationFile:
    version: int
    name: str
    path: Path

    def text(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except OSError as error:
            raise HeadraceError(f"Failed to read {self.path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise HeadraceError(f"Failed to read {self.path}: it is not UTF-8") from None

    def checksum(self) -> str:
        """As ksqlDB's tool counts it, which is all that MD5 is good for."""
        try:
            return hashlib.md5(self.path.read_bytes(), usedforsecurity=False).hexdigest()
        except OSError as error:
            raise HeadraceError(
                f"Could not compute hash for file '{self.path}': {error.strerror}"
            ) from None


def migrations(directory: Path, output: Output) -> list[MigrationFile]:
    """All migrations of a directory by version; says what it passes over."""
    if not directory.is_dir():
        raise HeadraceError(f"{directory} is not a directory.")
    found = list(_read(sorted(directory.iterdir()), output))
    for one, next_ in pairwise(found):
        if one.version == next_.version:
            raise HeadraceError(
                "Found multiple migration files with the same version. "
                f"Version: {one.version}. Files: '{next_.path}', '{one.path}'"
            )
    return found


def _read(paths: Sequence[Path], output: Output) -> Iterator[MigrationFile]:
    for path in paths:
        if path.is_dir():
            continue
        match = _NAME.match(path.name)
        if match is None:
            output.error(
                "Skipping file does not match expected migration file pattern "
                f"'V<six digit number>__<name>.sql': {path.name}"
            )
            continue
        version = int(match[1])
        if version == 0:
            raise HeadraceError(f"MigrationFile file versions must be positive. Found: {path.name}")
        yield MigrationFile(version, match[2].replace("_", " "), path)


def migration(directory: Path, version: int, output: Output) -> MigrationFile | None:
    return next((m for m in migrations(directory, output) if m.version == version), None)


# ------------------------------------------------------------------------- projects and files


def new_project(path: Path, url: str, output: Output) -> None:
    """Makes a project's directories and its configuration; an existing one is not overwritten."""
    output.line(f"Creating new migrations project at {path}")
    for directory in (path, path / MIGRATIONS_DIR):
        _create_directory(directory, output)
    file = path / CONFIG_FILE
    if file.exists():
        raise HeadraceError(f"Failed to create file. File already exists: {file}")
    output.line(f"Creating file: {file}")
    text = initial_config(url)
    output.line(f"Writing to config file: {text.rstrip()}")
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise HeadraceError(f"Failed to create file {file}: {error.strerror}") from None
    output.line("Migrations project directory created successfully")


def _create_directory(path: Path, output: Output) -> None:
    if path.is_dir():
        output.error(f"{path} already exists. Skipping directory creation.")
        return
    if path.exists():
        raise HeadraceError(f"{path} already exists as a file. Cannot create directory.")
    output.line(f"Creating directory: {path}")
    try:
        path.mkdir(parents=True)
    except PermissionError:
        raise HeadraceError(f"Permission denied: create directory {path}") from None
    except OSError as error:
        raise HeadraceError(f"Failed to create directory {path}: {error.strerror}") from None


def create(directory: Path, description: str, version: int | None, output: Output) -> None:
    """Makes an empty file for the next version, or for the one that is given."""
    if not description:
        raise HeadraceError("Description cannot be empty.")
    known = migrations(directory, output)
    if version is None:
        version = known[-1].version + 1 if known else 1
    existing = next((m for m in known if m.version == version), None)
    if existing is not None:
        raise HeadraceError(
            f"Found existing migrations file for version {version}: {existing.path}"
        )
    if version > LAST_VERSION:
        raise HeadraceError(
            f"Invalid version file version: {version}. Version must fit into a six-digit integer."
        )
    path = directory / f"V{version:06d}__{_NOT_IN_NAMES.sub('_', description)}.sql"
    output.line(f"Creating migration file: {path}")
    try:
        path.touch(exist_ok=False)
    except OSError as error:
        raise HeadraceError(f"Failed to create file {path}: {error.strerror}") from None
    output.line("Migration file successfully created")
