"""What executors on other machines need of us, as one zip that Spark unpacks beside each of them.

It holds the package itself. The functions of users are not in it: they travel with the queries that
call them. With distributions in it, an executor needs nothing but Python and Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePath
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import headrace

# The directory beside an executor that the zip is unpacked to.
DIRECTORY = "headrace-package"

# Comes with Spark itself.
_SPARK = frozenset({"pyspark", "py4j"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"""\bextra\s*==\s*['"]([\w.-]+)['"]""")


def write_package(file: Path, distributions: Iterable[str] = ()) -> None:
    """Writes the zip; `distributions` come along, with all that they require."""
    content = dict(_package())
    for found in required(distributions):
        content |= dict(_installed(found))
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.unfinished")
    with ZipFile(unfinished, "w", ZIP_DEFLATED) as archive:
        for name, path in sorted(content.items()):
            # Nothing but names and contents: the same package is the same zip.
            archive.writestr(ZipInfo(name), path.read_bytes(), ZIP_DEFLATED)
    unfinished.replace(file)


def dependencies() -> list[str]:
    """The distributions that Headrace's server requires, but for Spark."""
    wanted = _requirements(distribution("headrace"), extra="server")
    return [name for name in wanted if name not in _SPARK]


def required(names: Iterable[str]) -> list[Distribution]:
    """The distributions of these names and those that they require, as installed here."""
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = _canonical(waiting.pop())
        if name in found or name in _SPARK:
            continue
        found[name] = distribution(name)
        waiting += [each for each in _requirements(found[name]) if _is_installed(each)]
    return list(found.values())


def _package() -> Iterator[tuple[str, Path]]:
    root = Path(headrace.__file__).parent
    for path in root.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield str(PurePath(root.name) / path.relative_to(root)), path


def _installed(found: Distribution) -> Iterator[tuple[str, Path]]:
    for file in found.files or ():
        # Commands lie outside of the library; nobody calls them on an executor.
        if ".." not in file.parts and "__pycache__" not in file.parts:
            path = Path(str(found.locate_file(file)))
            if path.is_file():
                yield str(file), path


def _requirements(found: Distribution, extra: str = "") -> list[str]:
    """The names of what it requires on any platform; of its extras, what this one requires."""
    names = []
    for line in found.requires or ():
        name, of_extra = _NAME.match(line), _EXTRA.search(line)
        if name and (of_extra is None or of_extra[1] == extra):
            names.append(_canonical(name[0]))
    return names


def _is_installed(name: str) -> bool:
    """What is required on other platforms only is not."""
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
