"""The runner waits for queries as a server runs them: those that start again are no failures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from headrace.engine.queries.persistent import PersistentQuery
from headrace.model.entities import QueryError
from headrace.spark.rows.optimistic import OPTIMISTIC, PESSIMISTIC, OptimisticDecoding
from headrace.testing.rest_cases import work_off
from headrace.testing.streamed import StreamedQuery

NATIVE_ONLY = OptimisticDecoding(native=True, small_rows=False)


class Run:
    """One start of a streaming query; `then` happens when it fails."""

    def __init__(self, then: Any = None) -> None:
        self._then = then
        self.worked_off = False

    def processAllAvailable(self) -> None:
        if self._then is None:
            self.worked_off = True
            return
        self._then()
        raise StreamingQueryException("a record that Spark cannot decode")

    def stop(self) -> None: ...


def test_a_query_of_a_server_case_may_be_started_again() -> None:
    second = Run()
    query: Any = SimpleNamespace(errors=[QueryError(0, "of another time")])
    query.streaming = Run(then=lambda: setattr(query, "streaming", second))
    work_off(query)
    assert second.worked_off


def test_a_query_of_a_server_case_that_failed_fails_the_case() -> None:
    query: Any = SimpleNamespace(errors=[])
    query.streaming = Run(then=lambda: query.errors.append(QueryError(0, "broken")))
    with pytest.raises(StreamingQueryException):
        work_off(query)


def test_a_query_that_could_not_be_started_is_not_waited_for() -> None:
    query: Any = SimpleNamespace(errors=[QueryError(0, "no such topic")], streaming=None)
    work_off(query)


def test_a_streamed_query_starts_again_for_each_thing_its_plan_assumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assumed = iter([NATIVE_ONLY, PESSIMISTIC])
    monkeypatch.setattr(OptimisticDecoding, "after", lambda self, failure: next(assumed))
    runs = {OPTIMISTIC: Run(lambda: None), NATIVE_ONLY: Run(lambda: None), PESSIMISTIC: Run()}
    query = PersistentQuery("q", "SELECT", plan=lambda: None, build=None, checkpoint="")
    monkeypatch.setattr(query, "start", lambda: setattr(query, "streaming", runs[query.decoding]))
    StreamedQuery(query).drain()
    assert runs[PESSIMISTIC].worked_off
