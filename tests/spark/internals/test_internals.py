"""Only `spark/internals` reaches into PySpark's private attributes."""

from __future__ import annotations

import ast
from pathlib import Path

import headrace

SOURCE = Path(headrace.__file__).parent
PRIVATE = {
    "_active_spark_context",
    "_cause",
    "_client_socket",
    "_ensure_initialized",
    "_gateway",
    "_jc",
    "_jdf",
    "_jsc",
    "_jsparkSession",
    "_jsq",
    "_jvm",
    "_jwrite",
    "_origin",
}
# Functions lie below Spark and may not import from it: they ask Java of patterns and time zones.
EXCEPT = {"functions/scalar/columns.py": {"_active_spark_context", "_jvm"}}


def used(file: Path) -> set[str]:
    """Private attributes of PySpark's objects, by name; an object's own are not meant."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE:
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            found |= set() if own else {node.attr}
    return found


def test_private_attributes_of_pyspark_are_named_in_internals_alone():
    files = {str(file.relative_to(SOURCE)): file for file in SOURCE.rglob("*.py")}
    elsewhere = {name for name in files if not name.startswith("spark/internals/")}
    assert len(elsewhere) < len(files)
    found = {name: used(files[name]) for name in elsewhere}
    assert {name: private for name, private in found.items() if private} == EXCEPT


def test_a_private_attribute_is_noticed(tmp_path):
    module = tmp_path / "module.py"
    module.write_text("def plan(query):\n    return query._jsq.explainInternal(False)\n")
    assert used(module) == {"_jsq"}
