"""Ships the modules of user-defined functions to executors.

The files of the extension directory are the modules of one package that is loaded from their text.
What is sent to an executor carries that text along; there the package is loaded once per process,
so that what a module keeps in memory (a model, a cache) is kept from batch to batch.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType

from pyspark import cloudpickle


@dataclass(frozen=True)
class Extension:
    """The sources of a directory: the path and text of each file, by the file's stem."""

    sources: tuple[tuple[str, str, str], ...]

    @classmethod
    def read(cls, directory: Path) -> Extension:
        files = sorted(directory.glob("*.py"))
        return cls(tuple((f.stem, str(f), f.read_text(encoding="utf-8")) for f in files))

    @property
    def package(self) -> str:
        """Its name tells different contents apart, so that one process can hold several."""
        digest = hashlib.sha256(repr(self.sources).encode()).hexdigest()
        return f"headrace_ext_{digest[:12]}"

    def install(self) -> str:
        """Makes the modules importable; gives the name of the package."""
        package = self.package
        if package not in sys.modules:
            sys.meta_path.append(_Finder(package, self))
            importlib.import_module(package)
        return package

    def load(self, stem: str) -> ModuleType:
        return importlib.import_module(f"{self.install()}.{stem}")


class _Finder(MetaPathFinder, InspectLoader):
    """Finds and loads the modules of one extension."""

    def __init__(self, package: str, extension: Extension) -> None:
        self.package = package
        self.files = {f"{package}.{stem}": (path, text) for stem, path, text in extension.sources}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.package and fullname not in self.files:
            return None
        return spec_from_loader(fullname, self, is_package=self.is_package(fullname))

    def is_package(self, fullname: str) -> bool:
        return fullname == self.package

    def get_source(self, fullname: str) -> str:
        return self.files.get(fullname, ("", ""))[1]

    def get_code(self, fullname: str) -> CodeType:
        path, text = self.files.get(fullname, (f"<{fullname}>", ""))
        return compile(text, path, "exec")


class Shipped:
    """Anything that holds a user's code: pickled, it brings the code's sources with it."""

    extension: Extension | None = None

    def __reduce__(self) -> tuple[object, ...]:
        content = cloudpickle.dumps(self.__dict__)  # type: ignore[no-untyped-call]
        return _arrive, (self.extension, type(self), content)


def _arrive(extension: Extension | None, kind: type[Shipped], content: bytes) -> Shipped:
    if extension is not None:
        extension.install()
    arrived = kind.__new__(kind)
    arrived.__dict__.update(cloudpickle.loads(content))
    return arrived
