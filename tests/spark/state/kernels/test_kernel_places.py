"""A kernel has two places: its module, and the lowering of the step that it runs for."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from headrace.spark.state import kernels
from headrace.spark.state.kernels.kernel import Output, Store
from headrace.spark.state.log import Bucket, Memory, StateMismatchError
from naming import modules_that_name


def specs() -> list[type]:
    """The kernels, which are the classes with a layout."""
    modules = (
        importlib.import_module(m.name)
        for m in pkgutil.iter_modules(kernels.__path__, kernels.__name__ + ".")
    )
    classes = {c for module in modules for c in vars(module).values() if isinstance(c, type)}
    found = {c for c in classes if hasattr(c, "layout") and hasattr(c, "open")}
    return sorted((c for c in found if c.__name__ != "KernelSpec"), key=lambda c: c.__name__)


@pytest.mark.parametrize("kernel", specs())
def test_a_kernel_is_named_where_it_is_and_where_its_step_is_lowered(kernel: type) -> None:
    (lowering,) = modules_that_name(kernel.__module__)[kernel.__name__]
    assert lowering.startswith("spark/lower/")


@dataclass(frozen=True)
class FirstRows:
    """The first row of each key."""

    tables: ClassVar[int] = 1
    whole_keys: ClassVar[bool] = True
    ignores_keyless: ClassVar[bool] = True
    carries: ClassVar[bool] = False
    timed: ClassVar[bool] = False
    windowed: ClassVar[bool] = False
    layout: ClassVar[str] = "first rows 1"

    def open(self, store: Store) -> FirstRowsKernel:
        return FirstRowsKernel(store)


class FirstRowsKernel:
    def __init__(self, store: Store) -> None:
        self.seen = store.tables[0]

    def run(self, rows, out: Output) -> None:
        for at, _, key, values, time, _ in rows:
            if key not in self.seen.data:
                self.seen.put(key, True)
                out.rows.append((at, key, values, time))

    def advance(self, side: int, now: int, out: Output) -> None:
        raise AssertionError("it is not timed")

    def restored(self, table: int, entries: Any) -> None:
        """There is no index."""


class Cells:
    """Spark's state store, as far as a bucket's log asks for it."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], bytes] = {}

    def get(self, run: int, part: int) -> bytes | None:
        return self.cells.get((run, part))

    def put(self, run: int, part: int, data: bytes) -> None:
        self.cells[run, part] = data

    def remove(self, run: int, part: int) -> None:
        del self.cells[run, part]


def batch(cells: Cells, *keys: str) -> list[str]:
    """A micro-batch in a worker that remembers nothing."""
    bucket, out = Bucket.open(cells, FirstRows(), Memory(0)), Output()
    bucket.kernel.run([(at, 0, key, (at,), at, at) for at, key in enumerate(keys)], out)
    bucket.commit(cells, Memory(0))
    return [key for _, key, _, _ in out.rows]


def test_a_new_kernel_needs_nothing_to_be_durable() -> None:
    """Its state is written, read by another worker, and refused to another kernel."""
    cells = Cells()
    assert batch(cells, "a", "b", "a") == ["a", "b"]
    assert batch(cells, "b", "c", "c") == ["c"]

    @dataclass(frozen=True)
    class LastRows(FirstRows):
        layout: ClassVar[str] = "last rows 1"

    with pytest.raises(StateMismatchError, match="first rows 1"):
        Bucket.open(cells, LastRows(), Memory(0))
