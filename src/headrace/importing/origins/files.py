"""Files of statements: scripts, with SET and DEFINE as in ksqlDB's shell, and ksqlDB's backups of
its command topic (`ksql.metastore.backup.location`), a command on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from headrace.importing.commands import read_command
from headrace.importing.recorded import History, Recorded, Unreadable
from headrace.model.errors import HeadraceError
from headrace.sql import ast
from headrace.sql.parser import parse_statement, split
from headrace.sql.variables import substitute, substitute_text

Entry = Recorded | Unreadable


def read_files(
    paths: Sequence[Path], service_id: str, variables: Mapping[str, str] | None = None
) -> History:
    """The statements of all files, in order; `variables` are defined before the first."""
    session = _Session(dict(variables or {}))
    entries: list[Entry] = []
    has_run = False
    for path in paths:
        text = _text(path)
        if text.lstrip().startswith('"'):
            has_run = True
            entries += _backup(path, text, service_id)
        else:
            entries += session.statements(path, text)
    return History(", ".join(map(str, paths)), tuple(entries), has_run)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise HeadraceError(f"Cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise HeadraceError(f"Cannot read {path}: it is not UTF-8") from None


class _Session:
    """What SET and DEFINE have said so far; it holds for the files that follow, too."""

    def __init__(self, variables: dict[str, str]) -> None:
        self._variables = variables
        self._properties: dict[str, object] = {}

    def statements(self, path: Path, text: str) -> Iterator[Entry]:
        for one in split(text):
            place = f"{path.name}:{one.position.line}"
            try:
                replaced = substitute(one.text, self._variables)
                statement = parse_statement(replaced)
            except HeadraceError as error:
                yield Unreadable(place, str(error))
                continue
            if not self._takes(statement):
                yield Recorded(replaced, place, session=dict(self._properties))

    def _takes(self, statement: ast.Statement) -> bool:
        match statement:
            case ast.SetProperty(name, value):
                self._properties[name] = value
            case ast.UnsetProperty(name):
                self._properties.pop(name, None)
            case ast.DefineVariable(name, value):
                self._variables[name] = substitute_text(value, self._variables)
            case ast.UndefineVariable(name):
                self._variables.pop(name, None)
            case _:
                return False
        return True


def _backup(path: Path, text: str, service_id: str) -> Iterator[Entry]:
    """Lines of the form KEY:VALUE, both JSON."""
    decoder = json.JSONDecoder()
    for number, line in enumerate(filter(None, text.splitlines())):
        place = f"{path.name}:{number + 1}"
        try:
            _, end = decoder.raw_decode(line)
        except ValueError as error:
            yield Unreadable(place, f"It is not a command of ksqlDB: {error}.")
            continue
        value = line[end:].removeprefix(":")
        yield read_command(line[:end], value, place, service_id=service_id, offset=number)
