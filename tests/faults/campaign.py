"""One run of the fault campaign: a service under load, faults, and an undisturbed twin."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import kinds as fault_kinds
from kinds import RECOVERY_SECONDS
from load import QUERIES, REBORN, REBORN_SOURCE, Load, Readers
from supervised import Supervised

from headrace.client import ClientError, ConnectionFailed
from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.broker import EmbeddedBroker
from headrace.kafka.client import KafkaConnection
from headrace.kafka.jars import ensure_jars
from headrace.kafka.ports import free_port
from headrace.kafka.records import (
    NewRecord,
    Record,
    RecordReader,
    RecordWriter,
)
from headrace.model.errors import HeadraceError
from headrace.registry.server import EmbeddedRegistry
from scene import Scene
from workload import SOURCES, TOPICS, Kind

T = TypeVar("T")

# By topic and partition.
Ends = dict[str, dict[int, int]]

DISTURBED, TWIN = "disturbed", "twin"
TMPFS_MB = 512
# So many faults are waited for until the service has recovered, if the run has the time: a fault
# may take so many seconds on average. The others meet a service that may not have.
WAITED_FOR = 0.4
SECONDS_EACH = 15.0


@dataclass
class Fault:
    """What happened, when (seconds from the start), and how long until all was as before."""

    kind: str
    at: float
    took: float
    told: str
    targets: Ends | None = None  # where the input topics ended when it was over
    recovered: float | None = None

    @property
    def over(self) -> float:
        return self.at + self.took


class Campaign:
    """A broker, a registry, a supervised server, the load, and what happens to them."""

    def __init__(
        self, directory: Path, seed: int, guarantee: str, queries: Sequence[str] | None = None
    ) -> None:
        self.directory = directory
        self.guarantee = guarantee
        self.exactly_once = guarantee != "at_least_once"
        self.seed = seed
        self.chance = random.Random(seed)
        self.queries = [k for name, k in QUERIES.items() if queries is None or name in queries]
        self.faults: list[Fault] = []
        self._pending: list[threading.Timer] = []
        self._lasts = 0.0  # how long the fault that happens now goes on after that
        self.reborn = 0  # how many records were written to the topic of that name
        self.state = directory / "state"
        self.state_is_small = False
        self._parts = ExitStack()
        self._servers: list[Supervised] = []
        self._began = time.monotonic()
        self._monitored = threading.Event()

    def __enter__(self) -> Campaign:
        try:
            self._start()
        except BaseException:
            self._parts.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for timer in self._pending:
            timer.cancel()
        self._parts.close()

    def _start(self) -> None:
        self._mount()
        self.broker = EmbeddedBroker(self.directory / "kafka", free_port(), ensure_jars(print))
        self._parts.enter_context(self.broker)
        # The harness itself waits for as long as a fault may last.
        self.kafka = KafkaConnection(
            {"bootstrap.servers": self.broker.bootstrap_servers}, timeout=RECOVERY_SECONDS
        )
        self.admin = TopicAdmin(self.kafka)
        self.registry = EmbeddedRegistry(self.kafka, free_port())
        self._parts.enter_context(self.registry)
        for topic, partitions in TOPICS.items():
            self.admin.create(TopicSpec(topic, partitions, 1, {}))
        self.admin.create(TopicSpec("reborn", 1, 1, {}))
        self._parts.callback(self._close_servers)
        self.server = self.another_server()
        self.load = Load(self.kafka, self.seed)
        self._parts.callback(self.load.close)
        self.readers = Readers(lambda: self.server.url, DISTURBED, self.queries)
        self._parts.callback(self.readers.stop)

    def _mount(self) -> None:
        """A small file system for state, so that it can be full; only root may do that."""
        self.state.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_MB}m", "tmpfs", str(self.state)]
        with suppress(OSError):
            self.state_is_small = subprocess.run(command, capture_output=True).returncode == 0
        if self.state_is_small:
            self._parts.callback(subprocess.run, ["umount", "--lazy", str(self.state)])

    def another_server(self) -> Supervised:
        """One more server of the same service."""
        made = self._server(f"server{len(self._servers)}", "default_", self.state)
        self._servers.append(made)
        return made

    def _server(self, name: str, service: str, state: Path) -> Supervised:
        settings = {
            "state.dir": str(state),
            "ksql.service.id": service,
            "ksql.schema.registry.url": self.registry.url,
            "processing.guarantee": self.guarantee,
            # None lives long enough to be worth more: a third of its time went into compiling.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        }
        return Supervised(self.directory / name, self.broker.bootstrap_servers, settings)

    def _close_servers(self) -> None:
        for server in self._servers:
            server.close()

    # ------------------------------------------------------------------------------- the run

    def run(self, faults: int, kinds: Sequence[str]) -> None:
        """Everything: queries and load, so many faults, recovery, the twin, the comparison."""
        scene = self.server.scene()
        self._create(scene, DISTURBED)
        scene.close()
        self._say(f"SEED={self.seed}: {len(self.queries)} queries, {self.guarantee}")
        self.load.start()
        self.readers.start()
        self._until("every query has read something", lambda: self._has_read(self._anything()))
        watching = threading.Thread(target=self._monitor, daemon=True)
        watching.start()
        try:
            for chosen in self._sequence(faults, kinds):
                self._happen(fault_kinds.KINDS[chosen])
            for timer in self._pending:
                timer.join()
            self._until(
                "all is as before", lambda: all(f.recovered is not None for f in self.faults)
            )
        finally:
            self._monitored.set()
            watching.join()
            self.report()
        self._finish()

    def _sequence(self, faults: int, kinds: Sequence[str]) -> list[str]:
        """Each kind about as often as the others, in an order that the seed decides."""
        possible = []
        for name in kinds:
            reason = fault_kinds.KINDS[name].needs(self)
            if reason is None:
                possible.append(name)
            else:
                self._say(f"{name} is left out: {reason}")
        rounds = [possible] * -(-faults // len(possible))
        shuffled = [self.chance.sample(round_, len(round_)) for round_ in rounds]
        return [name for round_ in shuffled for name in round_][:faults]

    def _happen(self, kind: fault_kinds.Kind) -> None:
        at, self._lasts = self._now(), 0.0
        told = kind.happen(self)
        fault = Fault(kind.name, at, self._now() - at + self._lasts, told)
        self.faults.append(fault)
        self._say(f"{len(self.faults)}: {kind.told} {told}".rstrip())
        spent = self._now() - self.faults[0].at
        if self.chance.random() < WAITED_FOR and spent < len(self.faults) * SECONDS_EACH:
            self._until(f"{kind.name} is over", lambda: fault.recovered is not None)
        time.sleep(self.chance.uniform(0, 2))

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _finish(self) -> None:
        """Lets the queries read everything, and compares them with the twin's."""
        self.load.stop()
        scene = self.server.scene()
        self._drain(scene, DISTURBED)
        self.load.write(self.load.feed.last())
        self._drain(scene, DISTURBED)
        scene.wait(
            lambda: {q["state"] for q in _persistent(scene)}, lambda states: states == {"RUNNING"}
        )
        scene.close()
        self.readers.stop()
        self._say(f"Readers saw {self.readers.rows} rows, and failed {self.readers.failed} times")
        assert all(self.readers.rows.values()), "a reader never saw a row"
        assert self.server.retire() == 0
        twin = self._server("twin", "twin_", self.directory / "twin-state")
        self._servers.append(twin)
        scene = twin.scene()
        self._create(scene, TWIN)
        self._drain(scene, TWIN)
        scene.close()
        problems = [p for kind in self._of(TWIN) for p in self._compare(kind)]
        problems += self._compare_reborn() if REBORN in self.queries else []
        assert twin.retire() == 0
        assert not problems, "\n".join([f"SEED={self.seed}", *problems])
        self._say(f"{len(self.queries)} queries came to the same as their twins")

    def _create(self, scene: Scene, run: str) -> None:
        scene.sql(SOURCES + REBORN_SOURCE)
        for kind in self._of(run):
            scene.sql(kind.statement(run))

    def _of(self, run: str) -> list[Kind]:
        return [kind for kind in self.queries if run == DISTURBED or kind is not REBORN]

    def _drain(self, scene: Scene, run: str) -> None:
        ids = {q["sinks"][0]: q["id"] for q in _persistent(scene)}
        for kind in self._of(run):
            scene.drained(ids[kind.sink(run)], *kind.topics(run), patience=RECOVERY_SECONDS)

    # ------------------------------------------------------------------------ what it came to

    def _compare(self, kind: Kind) -> list[str]:
        """What is wrong with a query's output."""
        mine, twins = (self._records(kind, run) for run in (DISTURBED, TWIN))
        if kind.table:
            mine, twins = (_last(records) for records in (mine, twins))
        rows, expected = (Counter(_row(r, kind) for r in records) for records in (mine, twins))
        problems = _shown("lacks", Counter(expected.keys()) - Counter(rows.keys()))
        problems += _shown("should not have", Counter(rows.keys()) - Counter(expected.keys()))
        if self.exactly_once and not kind.table:
            problems += _shown("has too often", rows - expected)
            problems += _shown("has too seldom", expected - rows)
        if kind.ordered and not problems:
            problems += [
                f"has the rows of key {key!r} in another order"
                for key, values in _by_key(twins, kind).items()
                if _by_key(mine, kind)[key] != values
            ]
        if not expected:
            problems.append("has no rows in the twin: nothing was shown")
        return [f"{kind.name} {problem}" for problem in problems]

    def _compare_reborn(self) -> list[str]:
        found, expected = self._reborn_read(), Counter(range(self.reborn))
        missing, doubled = sorted(expected - found), sorted(found - expected)
        problems = [f"lacks the records {missing}"] if missing else []
        if self.exactly_once and doubled:
            problems.append(f"has records more than once: {doubled}")
        return [f"reborn {problem}" for problem in problems]

    def _reborn_read(self) -> Counter[int]:
        values = [json.loads(r.value or b"{}") for r in self._records(REBORN, DISTURBED)]
        return Counter(value["N"] for value in values)

    def _records(self, kind: Kind, run: str) -> list[Record]:
        return list(RecordReader(self.kafka, self.admin).read(kind.sink(run)))

    # --------------------------------------------------------------------------- recovery

    def _monitor(self) -> None:
        """Notes when the queries have got past where the topics ended after each fault."""
        while not self._monitored.wait(0.3):
            for fault in [f for f in self.faults if f.recovered is None]:
                with suppress(HeadraceError, OSError, ValueError):  # others happen meanwhile
                    self._look_at(fault)

    def _look_at(self, fault: Fault) -> None:
        if fault.targets is None and self._now() >= fault.over:
            fault.targets = self._ends()
        if fault.targets is not None and self._has_read(fault.targets):
            fault.recovered = self._now() - fault.over

    def _ends(self) -> Ends:
        return {topic: self.admin.end_offsets(topic) for topic in TOPICS}

    def _anything(self) -> Ends:
        return {topic: {0: 1} for topic in TOPICS}

    def _has_read(self, targets: Ends) -> bool:
        """Whether each query has finished batches up to there. Checkpoints tell it, servers or
        not."""
        for kind in self.queries:
            topics = [t for t in kind.topics(DISTURBED) if t in TOPICS]
            reached = self.reached(kind)
            for topic in topics:
                for partition, end in targets[topic].items():
                    if reached.get(topic, {}).get(str(partition), 0) < end:
                        return False
        return True

    def reached(self, kind: Kind) -> dict[str, dict[str, int]]:
        """Where the query stood after its last finished batch."""
        pattern = re.compile(rf"C[ST]AS_{kind.sink(DISTURBED)}_\d+")
        found: dict[str, dict[str, int]] = {}
        for checkpoint in self.state.glob("*/*"):
            if not pattern.fullmatch(checkpoint.name):
                continue
            batches = [int(f.name) for f in checkpoint.glob("commits/[0-9]*")]
            with suppress(OSError, ValueError):
                text = (checkpoint / "offsets" / str(max(batches))).read_text()
                for line in text.splitlines()[2:]:  # after the version and the metadata
                    found |= json.loads(line)
        return found

    # ----------------------------------------------------------------------------- for faults

    def wait(self, look: Callable[[], T | None]) -> T:
        """What there is to see, as soon as there is anything."""
        deadline = time.monotonic() + RECOVERY_SECONDS
        while not (seen := look()):
            assert time.monotonic() < deadline, (
                f"SEED={self.seed}: not within {RECOVERY_SECONDS} s\n"
                f"{self._states()}\n{self._last_words()}"
            )
            time.sleep(0.3)
        return seen

    def later(self, seconds: float, end: Callable[[], object]) -> None:
        """Ends the fault that happens now after so many seconds; others may happen meanwhile."""
        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        self._pending.append(timer)
        self._lasts = seconds

    def leave(self, server: Supervised) -> None:
        """Lets a server end that is not needed any more."""
        if server.retire() is None:
            self._say("A server that was frozen did not end in 60 s when asked to")

    def is_reborn_read(self) -> bool:
        """Whether its query has read all that was written to that topic, and written it."""
        with suppress(HeadraceError):
            return self._reborn_read().keys() == set(range(self.reborn))
        return False

    def go_on_without(self, kind: Kind) -> None:
        """Resumes a query if it has stopped for records that it may have lost."""
        query = self.query_id(kind)
        (told,) = self.tell(f"EXPLAIN {query};")
        if told["queryDescription"]["state"] != "ERROR":
            return
        errors = [e["errorMessage"] for e in told["queryDescription"]["queryErrors"]]
        resume = f"RESUME {query};"
        if errors and resume in errors[-1]:
            self.tell(resume)

    def write_reborn(self) -> int:
        """Some records for that topic, by a producer that does not know it; where it then ends."""
        with RecordWriter(self.kafka) as writer:
            numbers = range(self.reborn, self.reborn + 20)
            writer.write_all(
                NewRecord("reborn", b"k%d" % (n % 3), b'{"N":%d}' % n) for n in numbers
            )
        self.reborn += 20
        return self.wait(lambda: self.ends("reborn"))[0]

    def ends(self, topic: str) -> dict[int, int] | None:
        """Where its partitions end; a broker that has just come back may not know it yet."""
        with suppress(HeadraceError):
            return self.admin.end_offsets(topic)
        return None

    def tell(self, statement: str) -> list[dict[str, Any]]:
        """Has the server execute it, as soon as there is one."""
        deadline = time.monotonic() + RECOVERY_SECONDS
        while True:
            scene = self.server.scene()
            try:
                return scene.sql(statement)
            except (ClientError, ConnectionFailed) as failure:
                assert time.monotonic() < deadline, f"{statement}: {failure}"
                time.sleep(0.5)
            finally:
                scene.close()

    def query_id(self, kind: Kind) -> str:
        listed = self.tell("SHOW QUERIES;")[0]["queries"]
        return str(next(q["id"] for q in listed if q["sinks"] == [kind.sink(DISTURBED)]))

    def _until(self, what: str, good: Callable[[], bool]) -> None:
        deadline = time.monotonic() + RECOVERY_SECONDS
        while not good():
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"SEED={self.seed}: {what}: not within {RECOVERY_SECONDS} s\n"
                    f"{self._states()}\n{self._last_words()}"
                )
            time.sleep(0.2)

    def _states(self) -> str:
        reached = {kind.name: self.reached(kind) for kind in self.queries}
        try:
            scene = self.server.scene(10)
            told = [f"{q['id']}: {q['state']}" for q in scene.client.queries()]
            told.append(scene._errors())
        except Exception as failure:
            told = [f"The server does not answer: {failure}"]
        ends = [f.targets for f in self.faults if f.targets is not None][-1:]
        return "\n".join([*told, f"Reached: {reached}", f"Ends: {ends}"])

    def _last_words(self) -> str:
        return self.server.server.told()[-4000:]

    # ------------------------------------------------------------------------------- report

    def _say(self, text: str) -> None:
        """On the terminal as it happens, where pytest shows it (`-s`)."""
        print(f"{time.monotonic() - self._began:7.1f} s  {text}", file=sys.stderr, flush=True)

    def report(self) -> None:
        """Each fault with its time, and a table of kinds, for the documentation."""
        for number, fault in enumerate(self.faults, 1):
            took = "never" if fault.recovered is None else f"{max(fault.recovered, 0):.1f} s"
            words = f"{number}: {fault.kind} {fault.told}".rstrip()
            self._say(f"{words} at {fault.at:.1f} s for {fault.took:.1f} s, recovered: {took}")
        each = (self._now() - self.faults[0].at) / len(self.faults) if self.faults else 0
        self._say(f"SEED={self.seed}, {each:.1f} s a fault\n\n{table(self.faults)}")


def table(faults: Sequence[Fault]) -> str:
    """Kinds and counts as Markdown."""
    lines = [
        "| fault | times | recovered, median | longest |",
        "|---|---:|---:|---:|",
    ]
    for name, kind in fault_kinds.KINDS.items():
        mine = [f for f in faults if f.kind == name]
        times = sorted(max(f.recovered, 0) for f in mine if f.recovered is not None)
        if mine:
            shown = [f"{median(times):.0f} s", f"{times[-1]:.0f} s"] if times else ["", ""]
            lines.append(f"| {kind.told} | {len(mine)} | {' | '.join(shown)} |")
    return "\n".join([*lines, f"| all | {len(faults)} | | |"])


def _persistent(scene: Scene) -> list[dict[str, Any]]:
    return [q for q in scene.client.queries() if q["sinks"]]


def _last(records: Sequence[Record]) -> list[Record]:
    """A table's rows: the last of each key, without those that are gone."""
    return [r for r in {r.key: r for r in records}.values() if r.value is not None]


def _row(record: Record, kind: Kind) -> tuple[object, ...]:
    whole = (record.key, record.value, record.timestamp)
    return whole if kind.timed else whole[:2]


def _by_key(records: Sequence[Record], kind: Kind) -> dict[bytes | None, list[object]]:
    """Each key's rows in the order in which they first came."""
    found: dict[bytes | None, dict[object, None]] = {}
    for record in records:
        found.setdefault(record.key, {})[_row(record, kind)] = None
    return {key: list(rows) for key, rows in found.items()}


def _shown(what: str, rows: Counter[tuple[object, ...]]) -> list[str]:
    if not rows:
        return []
    return [f"{what} {rows.total()} rows: {', '.join(map(repr, list(rows)[:3]))} …"]
