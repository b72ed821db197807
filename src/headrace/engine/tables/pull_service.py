"""Answers the pull queries of requests, by a plan or as prepared queries."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog.catalog import Catalog
from headrace.engine.tables.follower import TableTails
from headrace.engine.tables.prepared import PreparedPullQueries
from headrace.engine.tables.pull import PullAnswer, PullQueries
from headrace.model.errors import StatementError
from headrace.model.requests import Request
from headrace.model.settings import Settings
from headrace.model.sources import Source
from headrace.plan.pull import plan_pull
from headrace.sql import ast


class PullService:
    """Answers the pull queries of one server's clients."""

    def __init__(self, queries: PullQueries, tails: TableTails) -> None:
        self._queries = queries
        self._tails = tails
        self._prepared = PreparedPullQueries(tails)

    def answer(
        self,
        request: Request,
        query: ast.Query,
        catalog: Catalog,
        settings: Settings,
        texts: Mapping[str, str],
    ) -> PullAnswer:
        """The answer by a plan; `texts` are the settings as planning reads them."""
        if not settings.flag("ksql.query.pull.enable"):
            raise StatementError(
                "Pull queries are disabled. See https://cnfl.io/queries for more info.\n"
                "Add EMIT CHANGES if you intended to issue a push query.\n"
                "Please set ksql.query.pull.enable=true to enable this feature.\n"
            )
        plan = plan_pull(query, catalog, texts)
        answer = self._queries.answer(plan, settings)
        if plan.source.is_table:
            reader = self._queries.reader(plan.source)
            self._prepared.learn(request, query, plan, catalog, settings, reader)
        return answer

    def answer_known(self, request: Request, catalog: Catalog) -> PullAnswer | None:
        """The answer to a prepared query, as fresh as is asked."""
        return self._prepared.answer(request, catalog, self._tails.await_fresh)

    def answer_now(self, request: Request, catalog: Catalog) -> PullAnswer | None:
        """The answer to a prepared query, if its rows are in the store and fresh enough."""
        return self._prepared.answer(request, catalog)

    def forget(self, source: Source) -> None:
        """Drops what was kept for a source that was dropped or replaced."""
        self._queries.forget(source)

    def forget_prepared(self) -> None:
        """Drops all prepared queries, because settings have changed."""
        self._prepared = PreparedPullQueries(self._tails)
