"""What servers of one service tell of themselves, and know of each other and their queries."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.engine.lease import QueryTold, Report
from headrace.engine.queries import PersistentQuery
from headrace.model.entities import ClusterStatus, HostStatus, QueryError, QueryState
from headrace.plan import nodes as n

if TYPE_CHECKING:
    from headrace.engine.engine import Engine

_ANY_HOST = ("0.0.0.0:", "[::]:")


def address(engine: Engine) -> str:
    """`host:port` by which this server is known to others; empty while it does not listen."""
    told = engine.world.settings.text("ksql.advertised.listener") or engine.addresses.get("server")
    found = (told or "").split("://")[-1].rstrip("/")
    for any_host in _ANY_HOST:
        if found.startswith(any_host):
            return f"{socket.gethostname()}:{found.removeprefix(any_host)}"
    return found


def report(engine: Engine) -> Report:
    """What this server tells with every beat. It must not wait for anything."""
    queries = engine.queries.all_known() if engine.queries.active else []
    return Report(
        address(engine),
        engine.position,
        engine.world.state_dir,
        {query.id: _told(query) for query in queries},
    )


def _told(query: PersistentQuery) -> QueryTold:
    if not query.errors:
        return QueryTold(query.state.value)
    last = query.errors[-1]
    return QueryTold(query.state.value, last.error_message, last.timestamp)


def told(engine: Engine, query: PersistentQuery) -> tuple[str, QueryState, Sequence[QueryError]]:
    """Where a query runs, how it is, and how it failed; the server that runs it knows."""
    if engine.queries.active:
        return address(engine), query.state, query.errors
    holder = engine.heartbeat.holding()
    if holder is None or query.id not in holder.report.queries:
        if query.planned is None:
            return address(engine), query.state, query.errors
        return address(engine), QueryState.UNRESPONSIVE, ()
    said = holder.report.queries[query.id]
    errors = () if said.error is None else (QueryError(said.error_at, said.error),)
    return holder.report.address, QueryState(said.state), errors


def warning(engine: Engine, query: PersistentQuery) -> str | None:
    """Why a query does not run, if it should."""
    _, state, errors = told(engine, query)
    if state not in (QueryState.DEGRADED, QueryState.ERROR):
        return None
    reason = errors[-1].error_message if errors else "the reason is not known"
    return f"Query {query.id} is {state}: {reason}"


def degraded(engine: Engine) -> dict[str, str]:
    """By query, or command that makes none: what cannot run now, and why."""
    found = dict(engine.unplanned)
    for query in engine.queries.all_known():
        _, state, errors = told(engine, query)
        if state is QueryState.DEGRADED and errors:
            found[query.id] = errors[-1].error_message
    return found


def cluster_status(engine: Engine) -> ClusterStatus:
    """Every server of the service that was heard of lately, and what runs there."""
    now, clock = int(time.time() * 1000), time.monotonic()
    hosts = {
        member.report.address: HostStatus(
            alive,
            now - int((clock - member.heard_at) * 1000),
            _active(engine, member.report.queries) if alive else {},
        )
        for member, alive in engine.heartbeat.members()
    }
    own = address(engine) or "localhost"
    hosts.setdefault(own, HostStatus(True, now))
    return ClusterStatus(hosts)


def _active(engine: Engine, ids: Iterable[str]) -> dict[str, Mapping[str, object]]:
    """The server that runs the queries reads all partitions of their topics."""
    known = {query.id: query for query in engine.queries.all_known()}
    found = [known[id_] for id_ in ids if id_ in known]
    topics = engine.world.admin.topics() if found else {}
    partitions = {name: topic.partitions for name, topic in topics.items()}
    return {
        query.id: {
            "activeStores": [],
            "activePartitions": [
                {"topic": source.topic, "partition": partition}
                for source in (n.sources(query.planned.node) if query.planned else ())
                for partition in range(partitions.get(source.topic, 0))
            ],
            "standByStores": [],
            "standByPartitions": [],
        }
        for query in found
    }
