"""The lease on the queries: servers that read one log, with clocks and networks of their own."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from headrace.engine.cluster.identity import Identity
from headrace.engine.cluster.lease import (
    BETWEEN_BEATS,
    LAPSE,
    SILENCE,
    Beat,
    Lease,
    QueryReport,
    Report,
)


@dataclass
class Kafka:
    """One log. What is written stands there at once; who reads when is the servers' matter."""

    now: float = 1000.0
    beats: list[tuple[bytes, float]] = field(default_factory=list)

    def append(self, beat: Beat) -> None:
        self.beats.append((beat.to_bytes(), self.now))


class Server:
    """A server with a clock that began at another time; asleep, it does nothing at all."""

    def __init__(self, kafka: Kafka, name: str, *predecessors: str, start: int = 0) -> None:
        self.kafka = kafka
        self.name = name
        self.epoch = random.Random(name).uniform(0, 1e6)
        self.lease = Lease(name, self.clock, predecessors, whole=start == 0)
        self.position = start
        self.reads = self.writes = self.awake = True
        self.outbox: list[tuple[Beat, float]] = []
        self.kafka.append(self.lease.next_beat(Report(address=name)))
        hello = kafka.beats[-1][1]
        while self.position < len(kafka.beats):
            self._hear(self.clock() - (hello - kafka.beats[self.position][1]))

    def clock(self) -> float:
        return self.kafka.now - self.epoch

    def _hear(self, at: float) -> None:
        data, _ = self.kafka.beats[self.position]
        self.lease.receive(self.position, Beat.from_bytes(data), at)
        self.position += 1

    def step(self) -> None:
        if not self.awake:
            return
        if self.lease.wait() == 0:
            beat = self.lease.next_beat(Report(address=self.name, applied=7))
            self.outbox.append((beat, self.kafka.now))
        if self.writes:
            for beat, _ in self.outbox:
                self.kafka.append(beat)
            self.outbox = []
        # The client tries for so long, and then gives up.
        self.outbox = [(b, at) for b, at in self.outbox if self.kafka.now - at < LAPSE]
        while self.reads and self.position < len(self.kafka.beats):
            self._hear(self.clock())


def run(kafka: Kafka, servers: list[Server], seconds: float) -> None:
    """Lets time pass; never do two hold the lease."""
    end = kafka.now + seconds
    while kafka.now < end:
        kafka.now += 0.25
        for server in servers:
            server.step()
        assert len(holding(servers)) <= 1


def holding(servers: list[Server]) -> list[str]:
    # A frozen server does nothing; its JVM's timer has the same deadline.
    return [s.name for s in servers if s.lease.holds()]


def test_a_single_server_holds_the_lease_at_once_and_keeps_it():
    kafka = Kafka()
    server = Server(kafka, "a")
    server.step()
    assert server.lease.holds()
    for _ in range(40):
        run(kafka, [server], 5)
        assert server.lease.holds()


def test_of_two_the_first_holds_it_and_both_know():
    kafka = Kafka()
    a, b = Server(kafka, "a"), Server(kafka, "b")
    run(kafka, [a, b], 30)
    assert holding([a, b]) == ["a"]
    assert b.lease.holding().server == "a"
    assert b.lease.holding().report.applied == 7
    assert [m.server for m in b.lease.others()] == ["a"]


def test_when_the_holder_dies_another_takes_over_within_its_time():
    kafka = Kafka()
    servers = [Server(kafka, name) for name in "abc"]
    run(kafka, servers, 20)
    servers[0].awake = False
    run(kafka, servers, SILENCE + 2)
    (new,) = holding(servers)
    assert new in "bc"
    assert not servers[1].lease.is_alive(servers[1].lease.members["a"])
    run(kafka, servers, 60)
    assert holding(servers) == [new]


def test_a_holder_that_was_frozen_finds_that_it_is_none():
    kafka = Kafka()
    a, b = Server(kafka, "a"), Server(kafka, "b")
    run(kafka, [a, b], 10)
    a.awake = False
    run(kafka, [a, b], 40)
    a.awake = True
    assert not a.lease.holds()  # before it has read anything
    run(kafka, [a, b], 20)
    assert holding([a, b]) == ["b"]


def test_a_holder_without_its_network_gives_up_before_another_takes_over():
    kafka = Kafka()
    a, b = Server(kafka, "a"), Server(kafka, "b")
    run(kafka, [a, b], 10)
    a.writes = False
    run(kafka, [a, b], LAPSE + 0.5)
    assert holding([a, b]) == []
    run(kafka, [a, b], SILENCE - LAPSE + 2)
    assert holding([a, b]) == ["b"]
    a.writes = True
    run(kafka, [a, b], 30)
    assert holding([a, b]) == ["b"]


def test_a_holder_that_comes_back_in_time_goes_on():
    kafka = Kafka()
    a, b = Server(kafka, "a"), Server(kafka, "b")
    run(kafka, [a, b], 10)
    a.writes = False
    run(kafka, [a, b], LAPSE + 2)
    assert holding([a, b]) == []
    a.writes = True
    run(kafka, [a, b], BETWEEN_BEATS + 1)
    assert holding([a, b]) == ["a"]


def test_who_hears_nothing_claims_in_vain():
    kafka = Kafka()
    a, b = Server(kafka, "a"), Server(kafka, "b")
    run(kafka, [a, b], 10)
    b.reads = False
    run(kafka, [a, b], 60)
    b.reads = True
    run(kafka, [a, b], 10)
    assert holding([a, b]) == ["a"]


def test_goodbye_hands_it_over_at_once():
    kafka = Kafka()
    a, b = Server(kafka, "a"), Server(kafka, "b")
    run(kafka, [a, b], 10)
    a.lease.resign()
    assert not a.lease.holds()
    kafka.append(a.lease.next_beat(Report()))
    a.awake = False
    run(kafka, [a, b], 2)
    assert holding([a, b]) == ["b"]
    assert b.lease.others() == []


def test_a_server_that_is_started_again_does_not_wait_for_its_own_death():
    kafka = Kafka()
    a = Server(kafka, "a")
    run(kafka, [a], 10)
    again = Server(kafka, "a2", "a")
    again.step()
    assert again.lease.holds()
    assert again.lease.others() == []


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_who_has_not_read_the_whole_log_takes_the_holders_word(cut):
    kafka = Kafka()
    a = Server(kafka, "a")
    run(kafka, [a], 130)
    late = Server(kafka, "late", start=len(kafka.beats) - 1 - cut if cut else len(kafka.beats))
    run(kafka, [a, late], 30)
    assert holding([a, late]) == ["a"]
    a.awake = False
    run(kafka, [a, late], SILENCE + 2)
    assert holding([a, late]) == ["late"]


def test_a_claim_without_a_later_word_is_not_believed_by_who_came_late():
    """It may have been void. Who made it says so with the next beat, and that comes soon."""
    kafka = Kafka()
    a, b = Server(kafka, "a"), Server(kafka, "b")
    run(kafka, [a, b], 10)
    b.reads = False
    while b'"claims": null' in kafka.beats[-1][0]:
        run(kafka, [a, b], 0.25)
    b.reads, b.awake = True, False
    late = Server(kafka, "late", start=len(kafka.beats) - 1)
    run(kafka, [a, b, late], 30)
    assert holding([a, b, late]) == ["a"]
    assert late.lease.holder == "a"


def test_a_log_that_nobody_wrote_to_for_long_is_free():
    kafka = Kafka()
    a = Server(kafka, "a")
    run(kafka, [a], 10)
    kafka.now += SILENCE
    new = Server(kafka, "new", start=3)
    new.step()
    assert new.lease.holds()


@pytest.mark.parametrize("seed", range(40))
def test_two_never_hold_it_whatever_happens(seed):
    chance = random.Random(seed)
    kafka = Kafka()
    servers = [Server(kafka, name) for name in "abc"]
    for turn in range(80):
        server = chance.choice(servers)
        what = chance.choice(["reads", "writes", "awake", "awake", "all"])
        if what == "all":
            for each in servers:
                each.reads = each.writes = each.awake = True
        else:
            setattr(server, what, chance.random() < 0.5)
        if chance.random() < 0.1:
            dead = servers.index(server)
            name = f"{server.name[0]}{turn}"
            known = kafka.now - SILENCE - chance.uniform(0, 60)  # what it reads of the log
            start = sum(at < known for _, at in kafka.beats)
            servers[dead] = Server(kafka, name, server.name, start=start)
        run(kafka, servers, chance.uniform(0, 12))
    for each in servers:
        each.reads = each.writes = each.awake = True
    run(kafka, servers, 3 * SILENCE)
    assert len(holding(servers)) == 1
    assert {s.lease.holder for s in servers} == set(holding(servers))


def test_a_beat_says_the_same_after_its_way_through_kafka():
    told = {
        "CSAS_A_1": QueryReport("ERROR", "no such topic", 5),
        "CTAS_B_2": QueryReport("RUNNING"),
    }
    beat = Beat("a", 3, claims=9, since=4, leaves=True, report=Report("h:1", 8, "/state", told))
    assert Beat.from_bytes(beat.to_bytes()) == beat


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[1]", b'{"server": 1}', b"\xff"])
def test_what_is_no_beat_is_passed_over(data):
    assert Beat.from_bytes(data) is None


def test_only_one_process_at_a_time_inherits_the_names_of_a_directory(tmp_path):
    first = Identity.take(tmp_path, "default_")
    beside = Identity.take(tmp_path, "default_")
    assert first.predecessors == beside.predecessors == ()
    first.release()
    second = Identity.take(tmp_path, "default_")
    assert second.predecessors == (first.name,)
    second.release()
    third = Identity.take(tmp_path, "default_")
    assert third.predecessors == (first.name, second.name)
    third.release()
