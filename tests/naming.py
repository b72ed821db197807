"""Which modules of the project name a class or a text: how many places a feature has."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import headrace

SOURCE = Path(headrace.__file__).parent


@dataclass
class Names:
    """What a module names: texts, imports (from where, what, by which name), `base.attribute`."""

    texts: set[str] = field(default_factory=set)
    imports: set[tuple[str, str, str]] = field(default_factory=set)
    attributes: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(cls, tree: ast.Module) -> Names:
        found = cls()
        for node in ast.walk(tree):
            match node:
                case ast.Constant(value=str(text)):
                    found.texts.add(text)
                case ast.ImportFrom(module=str(home), names=names):
                    found.imports |= {(home, n.name, n.asname or n.name) for n in names}
                case ast.Attribute(value=ast.Name(id=base), attr=attribute):
                    found.attributes.add((base, attribute))
        return found

    def from_module(self, home: str) -> Iterator[str]:
        """What it names of another module, which it may import as a whole."""
        aliases = {alias for place, name, alias in self.imports if f"{place}.{name}" == home}
        yield from (name for place, name, _ in self.imports if place == home)
        yield from (attribute for base, attribute in self.attributes if base in aliases)


@cache
def _modules() -> dict[str, Names]:
    """All but the benchmark and the test runner, which use every feature."""
    files = {str(path.relative_to(SOURCE)): path for path in SOURCE.rglob("*.py")}
    return {
        module: Names.of(ast.parse(path.read_text()))
        for module, path in files.items()
        if not module.startswith(("bench/", "testing/"))
    }


@cache
def modules_that_name(home: str) -> dict[str, set[str]]:
    """Of each thing that the module `home` holds, the other modules that name it."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, names in _modules().items():
        for name in names.from_module(home):
            found[name].add(module)
    return found


@cache
def modules_that_write() -> dict[str, set[str]]:
    """Of each text, the modules that have it as a constant."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, names in _modules().items():
        for text in names.texts:
            found[text].add(module)
    return found


def concrete(base: type) -> set[type]:
    """The classes below one that have none below them."""
    return {c for below in base.__subclasses__() for c in concrete(below)} or {base}
