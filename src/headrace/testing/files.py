"""Loads cases from files and folders, each file in its own format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from headrace.model.errors import HeadraceError
from headrace.testing.cases import Case, RecordCase
from headrace.testing.json_files import (
    input_record,
    is_json_tests,
    load_json,
    output_record,
    read_json_cases,
)
from headrace.testing.sql_files import is_sql_tests, read_sql_cases

SUFFIXES = (".json", ".sql")


def load_cases(paths: Iterable[Path]) -> list[Case]:
    """All cases of these files, and of all test files below these folders."""
    return [case for path in paths for case in _load(path)]


def _load(path: Path) -> Iterator[Case]:
    if not path.exists():
        raise HeadraceError(f"There is no file or folder {path}.")
    if not path.is_dir():
        cases = list(_read(path, path.name))
        if not cases:
            raise HeadraceError(f"{path} holds no tests: {_WHAT_A_TEST_FILE_IS}")
        yield from cases
        return
    for file in sorted(f for f in path.rglob("*") if f.suffix in SUFFIXES and f.is_file()):
        yield from _read(file, str(file.relative_to(path)))


_WHAT_A_TEST_FILE_IS = (
    "a JSON file has a list 'tests', a SQL file begins each test with '--@test: name'."
)


def _read(path: Path, name: str) -> Iterator[Case]:
    if path.suffix == ".sql":
        text = path.read_text(encoding="utf-8")
        return read_sql_cases(path, name) if is_sql_tests(text) else iter(())
    data = load_json(path)
    return read_json_cases(data, name) if is_json_tests(data) else iter(())


def load_separate(statements: Path, inputs: Path | None, outputs: Path) -> Case:
    """The form of ksqlDB's `ksql-test-runner`: statements, records in, records out."""
    return RecordCase(
        statements.name,
        statements.stem,
        statements=(_text(statements),),
        inputs=tuple(map(input_record, _records(inputs, "inputs"))),
        outputs=tuple(map(output_record, _records(outputs, "outputs"))),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as e:
        raise HeadraceError(f"{path} cannot be read: {e.strerror}") from None


def _records(path: Path | None, what: str) -> list[dict[str, object]]:
    if path is None:
        return []
    data = load_json(path)
    records = data.get(what) if isinstance(data, dict) else None
    if not isinstance(records, list):
        raise HeadraceError(f"{path} must hold a list '{what}'.")
    return records
