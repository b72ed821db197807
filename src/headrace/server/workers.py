"""Threads for the engine's blocking calls, so that the event loop never waits for them."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from headrace.server.failures import STOPPING, TOO_MANY_REQUESTS, ApiError
from headrace.server.settings import Limits

P = ParamSpec("P")
T = TypeVar("T")


class Pool:
    """A bounded number of threads with a bounded queue in front."""

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"headrace-{name}")
        self._slots = threading.Semaphore(threads + waiting)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self.submit(work, *args, **kwargs))

    def submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if not self._slots.acquire(blocking=False):
            raise ApiError(TOO_MANY_REQUESTS, "The server has too many requests. Try again later.")
        try:
            future = self._executor.submit(work, *args, **kwargs)
        except RuntimeError:  # the pool was stopped
            self._slots.release()
            raise ApiError(STOPPING.error_code, STOPPING.message) from None
        # Held until the thread is free again, which may be after the caller has gone.
        future.add_done_callback(lambda _: self._slots.release())
        return future

    def stop(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


class Workers:
    """Kinds of work are kept apart, so that slow ones do not hold up quick ones."""

    def __init__(self, limits: Limits) -> None:
        self.statements = Pool("statement", 8, limits.waiting_requests)
        self.queries = Pool("query", 8, limits.waiting_requests)
        self.status = Pool("status", 4, limits.waiting_requests)
        # A push query, a PRINT and an insert stream hold their thread as long as they last.
        self.streams = Pool("stream", limits.push_queries + 64, 0)
        # To end a query takes as long as its last batch; whoever leaves never waits in vain.
        self.endings = Pool("ending", 4, sys.maxsize // 2)

    def stop(self) -> None:
        for pool in (self.statements, self.queries, self.status, self.streams, self.endings):
            pool.stop()
