"""A kernel step: one description, from lowering to the workers that run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from headrace.spark.rows.optimistic import PESSIMISTIC, OptimisticDecoding
from headrace.spark.state.kernels.kernel import KernelSpec

DEFAULT_BUCKETS = 16
DEFAULT_MEMORY = 1024**3


@dataclass(frozen=True)
class KernelStep:
    """A kernel, the columns of its output, and how it is run.

    `coalesce` keeps only a batch's last row for each key. If its rows are to be `placed`, for a
    kernel behind this one, they tell the record that caused them. `entry` makes a log entry, a line
    of $errors, from a message. `depth` is how many kernels are below this one. `memory` is how many
    bytes of state a worker process may keep decoded.
    """

    kernel: KernelSpec
    key: StructType
    values: StructType
    coalesce: bool = False
    placed: bool = False
    buckets: int = DEFAULT_BUCKETS
    decoding: OptimisticDecoding = PESSIMISTIC
    entry: Callable[[str], str] | None = None
    depth: int = 0
    memory: int = DEFAULT_MEMORY


@dataclass(frozen=True)
class KernelInput:
    """One side of a kernel step: its rows, their key, and the values that the kernel sees.

    `rows` has the columns every row has: $time, $null, $partition, $offset, and $errors and $dead
    if rows may carry log entries, and $order if they come from another kernel. With `latest` the
    kernel sees no more than a batch's last row of each key.
    """

    rows: DataFrame
    key: Sequence[Column]
    values: Sequence[Column]
    latest: bool = False


@dataclass(frozen=True)
class SideLayout:
    """One input: the Arrow schema of its parcels; its first `keys` columns are the key.

    With `whole_keys` a key of which any column is null is no key, else one that is null throughout.
    With `latest` a batch's last row of each key stands for all of them. If `ordered`, rows come
    from another kernel, and tell their order.
    """

    schema: pa.Schema
    keys: int
    values: int
    whole_keys: bool = False
    latest: bool = False
    ordered: bool = False


@dataclass(frozen=True)
class StepLayout:
    """A kernel step with the Arrow schemas on which packing, running and unpacking agree."""

    step: KernelStep
    sides: tuple[SideLayout, ...]
    output: pa.Schema

    @property
    def precedence(self) -> Sequence[int]:
        """Which side's rows go first if they are of the same time."""
        order = range(len(self.sides))
        return order[::-1] if self.step.kernel.right_first else order
