"""The servers of the service: their reports, addresses and queries."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.engine.cluster.heartbeat import Heartbeat
from headrace.engine.cluster.lease import QueryReport, Report
from headrace.engine.cluster.peers import Peers
from headrace.engine.environment import Environment
from headrace.engine.queries.lags import Lag, QueryLags
from headrace.engine.queries.persistent import PersistentQuery, QueryKeeper
from headrace.kafka.admin import Topic
from headrace.model.entities import ClusterStatus, HostStatus, Json, QueryError, QueryState
from headrace.model.errors import HeadraceError
from headrace.plan import nodes as n

_ANY_HOST = ("0.0.0.0:", "[::]:")


@dataclass(frozen=True)
class Membership:
    """This server among those of its service. The addresses may change while it starts."""

    _env: Callable[[], Environment]
    _addresses: Mapping[str, str]
    _queries: QueryKeeper
    _heartbeat: Heartbeat
    peers: Peers = field(default_factory=Peers)

    @property
    def address(self) -> str:
        """`host:port` by which this server is known to others; empty while it does not listen."""
        given = self._env().settings.text("ksql.advertised.listener") or self._addresses.get(
            "server"
        )
        found = (given or "").split("://")[-1].rstrip("/")
        for any_host in _ANY_HOST:
            if found.startswith(any_host):
                return f"{socket.gethostname()}:{found.removeprefix(any_host)}"
        return found

    @property
    def runs_queries(self) -> bool:
        """Whether queries run on this server."""
        return self._queries.active

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
        topics = self._topics()
        hosts = self.peers.statuses() | {
            member.report.address: self._status(
                member.report.queries if alive and topics is not None else (),
                topics or {},
                alive,
                now - int((clock - member.heard_at) * 1000),
            )
            for member, alive in self._heartbeat.members()
        }
        hosts.setdefault(self.address or "localhost", HostStatus(True, now))
        return ClusterStatus(hosts)

    def _topics(self) -> Mapping[str, Topic] | None:
        """All topics; None if Kafka does not tell, which is no reason to tell nothing else."""
        try:
            return self._env().admin.topics()
        except HeadraceError:
            return None

    def _status(
        self, ids: Iterable[str], topics: Mapping[str, Topic], alive: bool, at: int
    ) -> HostStatus:
        known = {query.id: query for query in self._queries.all_known()}
        found = [known[id_] for id_ in ids if id_ in known]
        partitions = {name: topic.partitions for name, topic in topics.items()}
        return HostStatus(
            alive,
            at,
            {query.id: _assigned(query, partitions) for query in found},
            {key: lags for query in found for key, lags in self._lags(query).items()},
        )

    def _lags(self, query: PersistentQuery) -> dict[str, Json]:
        """How far a query with state is behind: its state is as old as what it has read."""
        stores = _stores(query)
        if not stores:
            return {}
        by_partition: dict[int, list[Lag]] = {}
        for lags in QueryLags(self._env(), self._queries.active).of(query).values():
            for partition, lag in lags.items():
                by_partition.setdefault(partition, []).append(lag)
        told = {
            str(partition): {
                "currentOffsetPosition": sum(lag.position for lag in lags),
                "endOffsetPosition": sum(lag.end for lag in lags),
                "offsetLag": sum(lag.records for lag in lags),
            }
            for partition, lags in sorted(by_partition.items())
        }
        group = self._env().query_group(query.id)
        return {f"{group}#{store}": {"lagByPartition": told, "size": len(told)} for store in stores}


def _stores(query: PersistentQuery) -> list[str]:
    """The names of a query's states."""
    steps = n.steps(query.planned.node) if query.planned is not None else ()
    return list(dict.fromkeys(step.store_name for step in steps if step.keeps_state))


def _assigned(query: PersistentQuery, partitions: Mapping[str, int]) -> Mapping[str, Json]:
    """The server that runs the queries reads all partitions of their topics."""
    sources = n.sources(query.planned.node) if query.planned else ()
    return {
        "activeStores": _stores(query),
        "activePartitions": [
            {"topic": source.topic, "partition": partition}
            for source in sources
            for partition in range(partitions.get(source.topic, 0))
        ],
        "standByStores": [],
        "standByPartitions": [],
    }


def _report(query: PersistentQuery) -> QueryReport:
    if not query.errors:
        return QueryReport(query.state.value)
    last = query.errors[-1]
    return QueryReport(query.state.value, last.error_message, last.timestamp)
