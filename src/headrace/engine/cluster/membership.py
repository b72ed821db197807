"""The servers of the service: their reports, addresses and queries."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.engine.cluster.heartbeat import Heartbeat
from headrace.engine.cluster.lease import QueryReport, Report
from headrace.engine.queries.persistent import PersistentQuery, QueryKeeper
from headrace.kafka.admin import TopicAdmin
from headrace.model.entities import ClusterStatus, HostStatus, QueryError, QueryState
from headrace.model.settings import Settings
from headrace.plan import nodes as n

_ANY_HOST = ("0.0.0.0:", "[::]:")


@dataclass(frozen=True)
class Membership:
    """This server among those of its service. The addresses may change while it starts."""

    _settings: Callable[[], Settings]
    _addresses: Mapping[str, str]
    _admin: TopicAdmin
    _queries: QueryKeeper
    _heartbeat: Heartbeat

    @property
    def address(self) -> str:
        """`host:port` by which this server is known to others; empty while it does not listen."""
        given = self._settings().text("ksql.advertised.listener") or self._addresses.get("server")
        found = (given or "").split("://")[-1].rstrip("/")
        for any_host in _ANY_HOST:
            if found.startswith(any_host):
                return f"{socket.gethostname()}:{found.removeprefix(any_host)}"
        return found

    def report(self, position: int, state_dir: str) -> Report:
        """The content of this server's heartbeats; it never blocks."""
        queries = self._queries.all_known() if self._queries.active else ()
        reports = {query.id: _report(query) for query in queries}
        return Report(self.address, position, state_dir, reports)

    def status(self, query: PersistentQuery) -> tuple[str, QueryState, Sequence[QueryError]]:
        """Where a query runs, how it is, and how it failed; the server that runs it knows."""
        if self._queries.active:
            return self.address, query.state, query.errors
        holder = self._heartbeat.holding()
        if holder is None or query.id not in holder.report.queries:
            if query.planned is None:
                return self.address, query.state, query.errors
            return self.address, QueryState.UNRESPONSIVE, ()
        said = holder.report.queries[query.id]
        errors = () if said.error is None else (QueryError(said.error_at, said.error),)
        return holder.report.address, QueryState(said.state), errors

    def warning(self, query: PersistentQuery) -> str | None:
        """Why a query does not run, if it should."""
        _, state, errors = self.status(query)
        if state not in (QueryState.DEGRADED, QueryState.ERROR):
            return None
        reason = errors[-1].error_message if errors else "the reason is not known"
        return f"Query {query.id} is {state}: {reason}"

    def degraded(self) -> dict[str, str]:
        """The queries that cannot run now, each with the reason."""
        found = {}
        for query in self._queries.all_known():
            _, state, errors = self.status(query)
            if state is QueryState.DEGRADED and errors:
                found[query.id] = errors[-1].error_message
        return found

    def cluster_status(self) -> ClusterStatus:
        """Every server of the service that was heard of lately, and what runs there."""
        now, clock = int(time.time() * 1000), time.monotonic()
        hosts = {
            member.report.address: HostStatus(
                alive,
                now - int((clock - member.heard_at) * 1000),
                self._partitions(member.report.queries) if alive else {},
            )
            for member, alive in self._heartbeat.members()
        }
        hosts.setdefault(self.address or "localhost", HostStatus(True, now))
        return ClusterStatus(hosts)

    def _partitions(self, ids: Iterable[str]) -> dict[str, Mapping[str, object]]:
        """The server that runs the queries reads all partitions of their topics."""
        known = {query.id: query for query in self._queries.all_known()}
        found = [known[id_] for id_ in ids if id_ in known]
        topics = self._admin.topics() if found else {}
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


def _report(query: PersistentQuery) -> QueryReport:
    if not query.errors:
        return QueryReport(query.state.value)
    last = query.errors[-1]
    return QueryReport(query.state.value, last.error_message, last.timestamp)
