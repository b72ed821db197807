"""The lease to run queries, computed by each server from one log of heartbeats.

Every server reads the same beats in the same order, and so comes to the same holder. A claim is a
compare-and-set on that log: it counts only if its author had read the holder's last word. How long
the holder itself may trust in its lease is a matter of its own clock. No I/O here, and no threads.
docs/design/0004-several-servers.md tells why this is safe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from headrace.catalog.command_log import number_or_none

# Seconds. Two never hold the lease because the holder gives up well before another may claim.
BETWEEN_BEATS = 2.0
LAPSE = 10.0
SILENCE = 15.0
BETWEEN_CLAIMS = 1.0
REMEMBERED = 600.0


@dataclass(frozen=True)
class QueryReport:
    """The state of a query as its server reports it, and its last failure."""

    state: str
    error: str | None = None
    error_at: int = 0


@dataclass(frozen=True)
class Report:
    """What a server reports with every heartbeat; `applied` is its position in the command log."""

    address: str = ""
    applied: int = 0
    state_dir: str = ""
    queries: Mapping[str, QueryReport] = field(default_factory=dict)


@dataclass(frozen=True)
class Beat:
    """A heartbeat. `claims` the lease, for a server that has read the log up to and including this
    offset; `since` is the offset of the claim by which its author holds the lease."""

    server: str
    number: int
    claims: int | None = None
    since: int | None = None
    leaves: bool = False
    report: Report = Report()

    def to_bytes(self) -> bytes:
        told = self.report
        return json.dumps(
            {
                "server": self.server,
                "number": self.number,
                "claims": self.claims,
                "since": self.since,
                "leaves": self.leaves,
                "address": told.address,
                "applied": told.applied,
                "stateDir": told.state_dir,
                "queries": {id_: [q.state, q.error, q.error_at] for id_, q in told.queries.items()},
            }
        ).encode()

    @staticmethod
    def from_bytes(data: bytes | None) -> Beat | None:
        """The heartbeat in a record; None if it is not one."""
        try:
            body = json.loads(data or b"")
            return Beat(
                str(body["server"]),
                int(body["number"]),
                number_or_none(body["claims"]),
                number_or_none(body["since"]),
                bool(body["leaves"]),
                Report(
                    str(body["address"]),
                    int(body["applied"]),
                    str(body["stateDir"]),
                    {id_: QueryReport(*told) for id_, told in body["queries"].items()},
                ),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


@dataclass(frozen=True)
class Member:
    """A server that was heard: its last beat, and when that was."""

    server: str
    report: Report
    offset: int
    heard_at: float


class Lease:
    """One server's view. `server` is new with every process; `predecessors` are earlier ones that
    are known to be dead. Times are of the server's own `clock`.

    The log is kept for an hour only. Who has not read it from its first record (`whole`) knows of
    no holder until somebody says that he is one.
    """

    def __init__(
        self,
        server: str,
        clock: Callable[[], float],
        predecessors: Collection[str] = (),
        whole: bool = True,
    ) -> None:
        self.server = server
        self.holder: str | None = None
        self.members: dict[str, Member] = {}
        self.holds_until = float("-inf")
        self._clock = clock
        self._predecessors = frozenset(predecessors)
        self._knows = whole
        self._since = -1  # the offset of the claim that counts
        self._renewed_at = -1  # the offset of the holder's last beat
        self._holder_heard_at = float("-inf")
        self._read_to = -1
        self._sent: dict[int, float] = {}
        self._number = 0
        self._sent_at = float("-inf")
        self._claimed_at = float("-inf")
        self._resigned = False

    # ------------------------------------------------------------------ what is heard

    def receive(self, offset: int, beat: Beat | None, heard_at: float) -> None:
        """Processes the next record of the log."""
        self._read_to = offset
        if beat is None:
            return
        self.members[beat.server] = Member(beat.server, beat.report, offset, heard_at)
        if beat.since is not None and beat.since > self._since:
            self._hold(beat.server, beat.since)
        if beat.claims is not None and self._counts(beat, beat.claims):
            self._hold(beat.server, offset)
        if beat.server == self.holder:
            self._renewed_at = offset
            self._holder_heard_at = heard_at
        if beat.leaves:
            del self.members[beat.server]
            if beat.server == self.holder:
                self.holder = None
        self._confirm(beat)
        self._forget(heard_at)

    def _counts(self, beat: Beat, read_to: int) -> bool:
        if not self._knows:
            return beat.server == self.server
        return self.holder is None or self._renewed_at <= read_to

    def _hold(self, server: str, since: int) -> None:
        self._knows = True
        self.holder, self._since = server, since

    def _confirm(self, beat: Beat) -> None:
        """The lease counts from when a beat was sent, and only once it was read back."""
        if beat.server != self.server:
            return
        sent_at = self._sent.pop(beat.number, None)
        if sent_at is not None and self.holder == self.server:
            self.holds_until = max(self.holds_until, sent_at + LAPSE)

    def _forget(self, now: float) -> None:
        for member in list(self.members.values()):
            if now - member.heard_at > REMEMBERED:
                del self.members[member.server]

    # ------------------------------------------------------------------ what that means

    def holds(self) -> bool:
        """Whether this server may run queries now."""
        return self.holder == self.server and self._clock() < self.holds_until

    def may_claim(self) -> bool:
        if self._resigned or self.holder == self.server or self._read_to < 0:
            return False
        if not self._knows:
            return not self.others()
        return (
            self.holder is None
            or self.holder in self._predecessors
            or self._clock() - self._holder_heard_at >= SILENCE
        )

    def is_alive(self, member: Member) -> bool:
        return self._clock() - member.heard_at < SILENCE

    def others(self) -> list[Member]:
        """The other servers that are alive."""
        own = self._predecessors | {self.server}
        return [m for m in self.members.values() if m.server not in own and self.is_alive(m)]

    def holding(self) -> Member | None:
        """The server that holds the lease, if it is alive."""
        member = self.members.get(self.holder) if self.holder is not None else None
        return member if member is not None and self.is_alive(member) else None

    # ------------------------------------------------------------------ what is said

    def wait(self) -> float:
        """The seconds until the next heartbeat is due."""
        now = self._clock()
        beat = self._sent_at + BETWEEN_BEATS - now
        claim = self._claimed_at + BETWEEN_CLAIMS - now if self.may_claim() else beat
        return max(0.0, min(beat, claim))

    def next_beat(self, report: Report) -> Beat:
        """The heartbeat to send now, with a claim if one is due."""
        now = self._clock()
        self._number += 1
        self._sent_at = self._sent[self._number] = now
        self._sent = {n: at for n, at in self._sent.items() if now - at < LAPSE}
        since = self._since if self.holder == self.server else None
        beat = Beat(self.server, self._number, since=since, report=report)
        if self._resigned:
            return replace(beat, leaves=True)
        if self.may_claim() and now - self._claimed_at >= BETWEEN_CLAIMS:
            self._claimed_at = now
            return replace(beat, claims=self._read_to)
        return beat

    def resign(self) -> None:
        """Gives up the lease; from now on only last heartbeats are sent."""
        self._resigned = True
        self.holds_until = float("-inf")
