"""What servers tell each other over HTTP (`/heartbeat`, `/lag`), as ksqlDB's do.

Servers of ours know each other through Kafka. What comes here is shown in `/clusterStatus`, and
decides nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from headrace.model.entities import HostStatus, Json

ALIVE_SECONDS = 10.0
MOST_HOSTS = 100


@dataclass(frozen=True)
class _Peer:
    heard_at: float = float("-inf")
    lags: Mapping[str, Json] = field(default_factory=dict)
    lags_at_ms: int = 0


class Peers:
    """The servers that have told of themselves, as far as there are not too many."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, _Peer] = {}

    def heard(self, host: str) -> None:
        self._change(host, lambda peer: peer)

    def note_lags(self, host: str, lags: Mapping[str, Json], at_ms: int) -> None:
        """Takes the lags of a server's stores, unless later ones are known."""

        def newer(peer: _Peer) -> _Peer:
            if at_ms < peer.lags_at_ms:
                return peer
            return replace(peer, lags=lags, lags_at_ms=at_ms)

        self._change(host, newer)

    def statuses(self) -> dict[str, HostStatus]:
        now = self._clock()
        with self._lock:
            known = dict(self._known)
        return {
            host: HostStatus(
                now - peer.heard_at <= ALIVE_SECONDS,
                int(peer.heard_at * 1000),
                state_store_lags=peer.lags,
                lags_update_ms=peer.lags_at_ms,
            )
            for host, peer in known.items()
        }

    def _change(self, host: str, change: Callable[[_Peer], _Peer]) -> None:
        now = self._clock()
        with self._lock:
            peer = replace(change(self._known.pop(host, _Peer())), heard_at=now)
            self._known[host] = peer  # the one that was heard last comes last
            while len(self._known) > MOST_HOSTS:
                del self._known[next(iter(self._known))]
