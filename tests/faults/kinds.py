"""The kinds of faults: what happens to a running service, each a function of its campaign."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from load import REBORN
from supervised import jvm_of, workers_of

from headrace.kafka.admin import TopicSpec
from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from campaign import Campaign

RECOVERY_SECONDS = 240

Happening = Callable[["Campaign"], str]


@dataclass(frozen=True)
class Kind:
    """`happen` returns when the fault is over, with a word on what it was exactly; one that goes
    on while others happen ends by what it has told the campaign to do `later`."""

    name: str
    told: str
    happen: Happening
    needs: Callable[[Campaign], str | None]  # why it cannot be done here, if so


KINDS: dict[str, Kind] = {}


def fault(
    name: str, told: str, needs: Callable[[Campaign], str | None] = lambda campaign: None
) -> Callable[[Happening], Happening]:
    def declare(happen: Happening) -> Happening:
        KINDS[name] = Kind(name, told, happen, needs)
        return happen

    return declare


@fault("server", "Server killed")
def _server(campaign: Campaign) -> str:
    everything = campaign.chance.random() < 0.5
    campaign.server.kill(everything=everything)
    return "with its JVM" if everything else "alone"


@fault("jvm", "Spark's JVM killed")
def _jvm(campaign: Campaign) -> str:
    campaign.server.scene().close()
    jvm = campaign.wait(lambda: jvm_of(campaign.server.pid))
    with suppress(ProcessLookupError):
        os.kill(jvm, signal.SIGKILL)
    return f"process {jvm}"


@fault("worker", "One Python worker killed")
def _worker(campaign: Campaign) -> str:
    found = campaign.wait(lambda: sorted(workers_of(campaign.server.pid)))
    chosen = campaign.chance.choice(found)
    with suppress(ProcessLookupError):
        os.kill(chosen, signal.SIGKILL)
    return f"one of {len(found)}"


@fault("broker", "Broker killed")
def _broker(campaign: Campaign) -> str:
    pid = campaign.broker.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    away = campaign.chance.uniform(0, 8)
    time.sleep(away)
    campaign.broker.start()
    return f"away {away:.0f} s"


@fault("frozen-broker", "Broker frozen 20 s")
def _frozen_broker(campaign: Campaign) -> str:
    pid = campaign.broker.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(20)
    finally:
        os.kill(pid, signal.SIGCONT)
    return ""


@fault("frozen-server", "Server frozen 12 to 60 s, a second one takes over")
def _frozen_server(campaign: Campaign) -> str:
    old, new = campaign.server, campaign.another_server()
    new.scene().close()
    # Short ones more often than long ones: another takes over after 15 s.
    seconds, everything = campaign.chance.triangular(12, 60, 12), campaign.chance.random() < 0.5
    stop = os.killpg if everything else os.kill
    pid = old.pid
    with suppress(ProcessLookupError):  # it has ended by itself, and a new one starts
        stop(pid, signal.SIGSTOP)
    try:
        campaign.server = new
        time.sleep(seconds)
    finally:
        with suppress(ProcessLookupError):
            stop(pid, signal.SIGCONT)
    campaign.later(0, lambda: campaign.leave(old))
    return f"{seconds:.0f} s, {'with its JVM' if everything else 'alone'}"


@fault("restart", "Clean restart")
def _restart(campaign: Campaign) -> str:
    campaign.server.scene().close()
    campaign.server.stop()
    return ""


@fault("pause", "PAUSE, RESUME")
def _pause(campaign: Campaign) -> str:
    chosen = campaign.chance.choice(campaign.queries)
    query = campaign.query_id(chosen)
    campaign.tell(f"PAUSE {query};")
    time.sleep(campaign.chance.uniform(0, 3))
    campaign.tell(f"RESUME {query};")
    return chosen.name


@fault("partitions", "Partitions added")
def _partitions(campaign: Campaign) -> str:
    total = len(campaign.wait(lambda: campaign.ends("spread"))) + 1
    campaign.admin.add_partitions("spread", total)
    return f"now {total}"


def _has_no_reborn(campaign: Campaign) -> str | None:
    return None if REBORN in campaign.queries else "the query reborn is not among QUERIES"


@fault("recreated", "A topic deleted and made again", needs=_has_no_reborn)
def _recreated(campaign: Campaign) -> str:
    """Its query has read it to its end before: nothing is lost, and all of the new one is read."""
    end = campaign.write_reborn()
    campaign.wait(campaign.is_reborn_read)
    campaign.admin.delete("reborn")
    campaign.admin.create(TopicSpec("reborn", 1, 1, {}))
    campaign.write_reborn()
    if campaign.exactly_once:
        # The query stops, as it cannot know that it had read all. Who deleted the topic does, and
        # does what it says.
        campaign.wait(lambda: campaign.is_reborn_read() or campaign.go_on_without(REBORN))
    return f"after {end} records"


@fault("registry", "Registry away 30 s")
def _registry(campaign: Campaign) -> str:
    """Other faults may happen meanwhile, to the broker that it needs as well."""

    def start() -> None:
        while True:
            with suppress(HeadraceError):
                campaign.registry.start()
                return
            time.sleep(1)

    campaign.wait(lambda: campaign.registry.failure is None)
    campaign.registry.stop()
    campaign.later(30, start)
    return ""


def _cannot_fill(campaign: Campaign) -> str | None:
    return None if campaign.state_is_small else "state.dir could not be mounted as a small tmpfs"


@fault("full-disk", "`state.dir` full for 20 s", needs=_cannot_fill)
def _full_disk(campaign: Campaign) -> str:
    """Other faults may happen meanwhile."""
    filler = campaign.state / "filler"
    campaign.wait(lambda: not filler.exists())
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    campaign.later(20, filler.unlink)
    return ""


@fault("torn-checkpoint", "Newest checkpoint file torn")
def _torn(campaign: Campaign) -> str:
    """As after a power cut: the server and its JVM end, and the newest file has no content."""
    logs = campaign.wait(lambda: sorted(campaign.state.glob("*/*/offsets")))
    checkpoint: Path = campaign.chance.choice(logs).parent
    campaign.server.kill(everything=True)
    torn = newest_of(checkpoint, ran_is_kept=campaign.exactly_once)
    if torn is None:
        return "none yet"
    torn.write_bytes(b"")
    return f"{checkpoint.name}/{torn.parent.name}/{torn.name}"


def newest_of(checkpoint: Path, *, ran_is_kept: bool) -> Path | None:
    """The file that was being written when the power went. A batch's offsets are on the disk
    before it runs: if that is kept (`ran_is_kept`), only what came after can be torn. Without it
    the disk has lied, and the offsets of a batch that ran are gone."""
    planned, done = (_newest_number(checkpoint / log) for log in ("offsets", "commits"))
    if planned is None:
        return None
    if not ran_is_kept:
        return checkpoint / "offsets" / str(planned)
    if done == planned:
        return checkpoint / "offsets" / str(planned + 1)
    return checkpoint / "commits" / str(planned)


def _newest_number(log: Path) -> int | None:
    return max((int(file.name) for file in log.glob("[0-9]*")), default=None)
