"""Thread pools for the engine's blocking calls, so that the event loop never blocks."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from headrace.server.error_responses import STOPPING, TOO_MANY_REQUESTS, ApiError
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
    """A thread pool for each kind of work, so that none can starve another.

    What may come in any number waits for a thread, in a queue of its own; what lasts is counted
    before it begins (`streams.Services`), so that there is a thread for each that was let in.
    """

    def __init__(self, limits: Limits) -> None:
        waiting = limits.waiting_requests
        self.statements = Pool("statement", 8, waiting)
        self.long_statements = Pool("long-statement", 2, waiting)  # of texts that take long to read
        self.reading = Pool("reading", 1, waiting)  # of large bodies
        self.queries = Pool("query", 8, waiting)  # pull queries
        self.rows = Pool("rows", 8, waiting)  # of pull queries that are not done at once
        self.starts = Pool("start", 8, waiting)  # of push queries
        # A step of a push query holds its thread for a second; so does one whose client has left.
        self.pushes = Pool("push", limits.push_queries, 2 * limits.push_queries)
        self.prints = Pool("print", limits.prints, 2 * limits.prints)
        self.inserts = Pool("insert", 8, limits.insert_streams)
        # To end a query takes as long as its last batch; whoever leaves never waits in vain.
        self.endings = Pool("ending", 4, sys.maxsize // 2)
        self.passwords = Pool("password", 2, 32)
        self.status = Pool("status", 4, waiting)
        self.health = Pool("health", 1, 1)

    def stop(self) -> None:
        for pool in vars(self).values():
            pool.stop()
