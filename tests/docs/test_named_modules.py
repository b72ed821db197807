"""Files and folders of the project that a page names exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
FOLDERS = ("src", "tests", "bench", "examples", "deploy", "docs", "conformance")
NAMED = re.compile(r"`([\w./-]*[\w-]+\.(?:py|java)|(?:\w+/)+)(?:::\w+)?`")
# What a page has its reader make.
OF_USERS = {"docs/user-functions.md": {"ext/names.py"}}


@cache
def files() -> frozenset[str]:
    found = (p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.is_file())
    return frozenset(str(p.relative_to(ROOT)) for p in found if p.suffix != ".pyc")


def exists(named: str) -> bool:
    """Whether the name is the end of a path, or a folder on one."""
    if named.endswith("/"):
        return any(f"/{named}" in f"/{path}" for path in files())
    return any(f"/{path}".endswith(f"/{named}") for path in files())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page: Path) -> None:
    named = set(NAMED.findall(page.read_text())) - OF_USERS.get(str(page.relative_to(ROOT)), set())
    assert sorted(name for name in named if not exists(name)) == []


def test_every_package_has_its_line() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = {p.parent.name for p in ROOT.glob("src/headrace/*/__init__.py")}
    _, _, table = text.partition("## Packages")
    table, _, _ = table.partition("\n## ")
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == packages


def test_the_glossary_is_short() -> None:
    _, _, glossary = (ROOT / "ARCHITECTURE.md").read_text().partition("## Glossary")
    words = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", glossary, re.MULTILINE)
    assert 5 < len(words) - 1 <= 15
    assert words[1:] == sorted(words[1:])
