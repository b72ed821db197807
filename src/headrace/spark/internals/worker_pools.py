"""Pools of Python workers: Spark shares its worker processes among functions that have the same
environment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

_lock = threading.Lock()


@contextmanager
def worker_pool(name: str) -> Iterator[None]:
    """Python functions made inside run in worker processes of their own."""
    context = SparkContext._active_spark_context
    assert context is not None
    with _lock:
        usual = context.environment
        # Another one, not the same one changed: someone else may be reading it just now.
        context.environment = {**usual, "HEADRACE_WORKERS": name}
        try:
            yield
        finally:
            context.environment = usual
