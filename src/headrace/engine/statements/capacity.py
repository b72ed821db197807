"""How many persistent queries there may be."""

from __future__ import annotations

from headrace.engine.statements.changes import Change
from headrace.model.errors import StatementError
from headrace.model.settings import Settings

_LIMIT = "ksql.query.persistent.active.limit"


def check_capacity(change: Change, server: Settings) -> None:
    """Refuses a query beyond the limit. The statements of a server's own file have none."""
    most, count = server[_LIMIT], len(change.catalog.queries)
    if change.starts is None or most is None or count <= int(most):
        return
    if server.text("ksql.queries.file") is not None:
        return
    raise StatementError(
        f"Not executing statement(s) '{change.text}' as it would cause the number of active, "
        "persistent queries to exceed the configured limit. Use the TERMINATE command to terminate "
        f"existing queries, or increase the '{_LIMIT}' setting via the 'ksql-server.properties' "
        f"file. Current persistent query count: {count}. Configured limit: {most}."
    )
