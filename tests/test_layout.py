"""`tests/` mirrors `src/headrace`: whoever knows a module knows where its tests are."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "headrace"
# Folders that no package has: what is in them.
PURPOSES = {
    "cluster": "a standalone Spark cluster on this machine (make test-cluster)",
    "deploy": "the image and the manifests of deploy/",
    "docs": "what the pages of docs/ say",
    "e2e": "whole servers, on a real Kafka and Spark",
    "faults": "all that can happen to a service, under load (make test-faults)",
    "ksqldb_config": "names that ksqlDB documents, and files like those that it ships",
    "soak": "ordinary use for long (make test-soak)",
    "sql/cases": "statements, and how they are parsed",
    "sql_cases": "the language: SQL in, records in, records out",
}


def unknown_folders(tests: Path, source: Path) -> set[str]:
    """The folders that are neither a package nor have a purpose."""
    return {
        folder
        for folder in _folders(tests)
        if folder not in PURPOSES and not any((source / folder).glob("*.py"))
    }


def too_high(tests: Path, source: Path) -> dict[str, str]:
    """Test files that are all about one package below the one of their folder."""
    found = {}
    for file in sorted(tests.rglob("test_*.py")):
        folder = file.parent.relative_to(tests).as_posix()
        packages = set(_packages(file, source, folder.partition("/")[0]))
        if folder in {".", *PURPOSES} or not packages:
            continue
        about = os.path.commonpath(packages)
        if about.startswith(f"{folder}/"):
            found[file.relative_to(tests).as_posix()] = about
    return found


def changes_the_path(text: str) -> bool:
    """Whether a file changes `sys.path`: what several folders use lies at the root of tests."""
    nodes = list(ast.walk(ast.parse(text))) if "sys.path" in text else []
    called = (n.func for n in nodes if isinstance(n, ast.Call))
    set_ = (t for n in nodes if isinstance(n, ast.Assign | ast.AugAssign) for t in _targets(n))
    return any(ast.unparse(n).startswith("sys.path") for n in (*called, *set_))


def _targets(node: ast.Assign | ast.AugAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _folders(tests: Path) -> set[str]:
    files = (f for f in tests.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    return {f.parent.relative_to(tests).as_posix() for f in files} - {"."}


def _packages(file: Path, source: Path, top: str) -> Iterator[str]:
    """The packages below `top` that a file imports from."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"headrace.{top}"):
            for name in node.names:
                path = source.joinpath(*f"{node.module}.{name.name}".split(".")[1:])
                package = next(p for p in (path, *path.parents) if p.is_dir())
                yield package.relative_to(source).as_posix()


def test_every_folder_is_a_package_or_has_a_purpose() -> None:
    assert unknown_folders(TESTS, SOURCE) == set()


def test_every_purpose_has_its_folder() -> None:
    assert PURPOSES.keys() - _folders(TESTS) == set()


def test_tests_lie_where_their_module_lies() -> None:
    assert too_high(TESTS, SOURCE) == {}


def test_no_file_changes_where_modules_are_found() -> None:
    assert [f for f in TESTS.rglob("*.py") if changes_the_path(f.read_text())] == []
    assert changes_the_path("import sys\nsys.path.insert(0, 'tests/e2e')")
    assert changes_the_path("import sys\nsys.path += ['tests/e2e']")
    assert changes_the_path("import sys\nsys.path[:0] = ['tests/e2e']")
    assert not changes_the_path("import sys\nprint(sys.path)")


def test_what_is_in_no_package_is_found(tmp_path: Path) -> None:
    source, tests = tmp_path / "src", tmp_path / "tests"
    for file, text in {
        source / "plan" / "language" / "binder.py": "",
        tests / "plan" / "language" / "test_binder.py": "",
        tests / "plan" / "test_names.py": "from headrace.plan.language.binder import Binder",
        tests / "plan" / "binding" / "test_names.py": "",
        tests / "sql_cases" / "joins.sql": "",
    }.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (source / "plan" / "nodes.py").touch()

    assert unknown_folders(tests, source) == {"plan/binding"}
    assert too_high(tests, source) == {"plan/test_names.py": "plan/language"}
