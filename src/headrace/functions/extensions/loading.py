"""Loads the files of `ksql.extension.dir`; a file that fails is reported and skipped."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.functions.declare.declaration import Function
from headrace.functions.extensions.annotations import DeclarationError
from headrace.functions.extensions.calling import reason
from headrace.functions.extensions.declaring import collecting
from headrace.functions.extensions.shipping import Extension
from headrace.model.errors import StatementError

if TYPE_CHECKING:
    from headrace.functions.registry import Registry


@dataclass(frozen=True)
class LoadProblem:
    """A file that could not be loaded, and why; `line` is where, if known."""

    path: Path
    reason: str
    line: int | None = None

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.reason}"


def load_extensions(directory: str | Path, registry: Registry) -> list[LoadProblem]:
    """Adds the functions of every file of the directory to the registry.

    Files whose name starts with an underscore are only there for the others to import.
    """
    folder = Path(directory).absolute()
    problems: list[LoadProblem] = []
    if not folder.is_dir():
        return problems
    try:
        extension = Extension.read(folder)
    except (OSError, UnicodeDecodeError) as error:
        return [LoadProblem(folder, reason(error))]
    for stem, path, _ in extension.sources:
        if stem.startswith("_"):
            continue
        try:
            with collecting(extension) as functions:
                extension.load(stem)
            _register(_merged(functions, path), registry)
        except (Exception, SystemExit) as error:  # a user's file may raise anything
            problems.append(LoadProblem(Path(path), _reason(error), _line(error, path)))
    return problems


def _merged(functions: Iterable[Function], path: str) -> list[Function]:
    """Declarations of the same name in one file are overloads of one function."""
    merged: dict[str, Function] = {}
    for function in functions:
        first = merged.get(function.name, replace(function, overloads=(), path=path))
        if first.kind is not function.kind:
            raise DeclarationError(
                f"{function.name} cannot be both {first.kind.value} and {function.kind.value}"
            )
        for overload in function.overloads:
            if first.find(overload.signature.identity(function.name)) is not None:
                raise DeclarationError(
                    f"{overload.signature.text(function.name)} is declared twice"
                )
            first = replace(first, overloads=(*first.overloads, overload))
        merged[function.name] = first
    return list(merged.values())


def _register(functions: list[Function], registry: Registry) -> None:
    """All of them or none."""
    added: list[str] = []
    try:
        for function in functions:
            registry.add(function)
            added.append(function.name)
    except StatementError:
        for name in added:
            registry.remove(name)
        raise


def _reason(error: BaseException) -> str:
    if isinstance(error, DeclarationError | StatementError):
        return str(error)
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg}"
    return reason(error)


def _line(error: BaseException, path: str) -> int | None:
    """The last line of the file that was reached."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno for f in reversed(frames) if f.filename == path), None)
