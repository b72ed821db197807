"""A sample of KLIP-3's test plan on Kafka and Spark: statements in, bytes of the topics out.

Format × both settings × kind of source × its key and value × WITH on source and query × kind of
query × its key and value. `tests/plan/sources/test_wrapping_matrix.py` plans every combination;
here some run. What is expected is told by `single_fields`, from the proposal.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from single_fields import SETTINGS, Field, Fields, Records, ordered, written

from wrap_properties import VALID, Wraps

GROUPS = 6
NUMBERS = (1, 2)  # a row for each
FORMATS = ("JSON", "AVRO")

K0 = [Field("K0", "INT", n) for n in NUMBERS]
K1 = [Field("K1", "STRING", f"key{n}") for n in NUMBERS]
V0 = [Field("V0", "INT", 100 * n) for n in NUMBERS]
V1 = [Field("V1", "STRING", f"value{n}") for n in NUMBERS]
RIGHT = {number: number * 7 for number in (*NUMBERS, *(v.value for v in V0))}


def picked(columns: list[list[Field]]) -> list[Fields]:
    """Columns to rows."""
    return [tuple(column[i] for column in columns) for i in range(len(NUMBERS))]


@dataclass(frozen=True)
class Said:
    """What decides how a declared source lies: the settings in force, and its WITH clause."""

    key_setting: bool
    value_setting: bool
    wraps: Wraps

    def wrap(self, side: str) -> bool:
        setting = self.key_setting if side == "key" else self.value_setting
        own = self.wraps.of(side)
        return setting if own is None else own

    @property
    def settings(self) -> dict[str, bool]:
        return {SETTINGS["key"]: self.key_setting, SETTINGS["value"]: self.value_setting}

    @property
    def text(self) -> str:
        return f", {self.wraps.text}" if self.wraps.text else ""


@dataclass(frozen=True)
class Source:
    name: str
    format: str
    kind: str
    keys: list[list[Field]]
    values: list[list[Field]]
    said: Said

    @property
    def statement(self) -> str:
        word = "KEY" if self.kind == "STREAM" else "PRIMARY KEY"
        columns = [f"{c[0].name} {c[0].type} {word}" for c in self.keys]
        columns += [f"{c[0].name} {c[0].type}" for c in self.values]
        form = "FORMAT" if self.keys else "VALUE_FORMAT"
        return (
            f"CREATE {self.kind} {self.name} ({', '.join(columns)}) WITH "
            f"(KAFKA_TOPIC='{self.name}', PARTITIONS=1, {form}='{self.format}'{self.said.text});"
        )


@dataclass(frozen=True)
class Combination:
    """A query on a source: its statements, and the rows that they have to write."""

    source: Source
    name: str
    way: str
    wraps: Wraps
    keys: list[list[Field]]
    values: list[list[Field]]
    select: str
    settings: dict[str, bool]  # those in force; they do not matter
    sink: Said | None = None  # of INSERT INTO: the sink is a source of its own

    def wrap(self, side: str) -> bool:
        if self.sink is not None:
            return self.sink.wrap(side)
        own = self.wraps.of(side)
        return self.source.said.wrap(side) if own is None else own

    @property
    def declared_sink(self) -> Source | None:
        if self.sink is None:
            return None
        return Source(self.name, self.source.format, "STREAM", self.keys, self.values, self.sink)

    @property
    def statement(self) -> str:
        if self.sink is not None:
            return f"INSERT INTO {self.name} {self.select};"
        kind = "TABLE" if self.way in ("group", "join tables") else self.source.kind
        said = f", {self.wraps.text}" if self.wraps.text else ""
        if self.keys and not self.source.keys:
            said += f", KEY_FORMAT='{self.source.format}'"
        return f"CREATE {kind} {self.name} WITH (KAFKA_TOPIC='{self.name}'{said}) AS {self.select};"

    @property
    def expected(self) -> list[object]:
        form = self.source.format
        return ordered(
            (written(form, key, self.wrap("key")), written(form, value, self.wrap("value")))
            for key, value in zip(picked(self.keys), picked(self.values), strict=True)
        )


class Sample:
    """Random sources, and queries on them: all ways in both formats, the rest by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.numbers = itertools.count()

    def said(self) -> Said:
        chance = self.chance
        return Said(chance.random() < 0.5, chance.random() < 0.5, chance.choice(VALID))

    def source(self, format_: str, kind: str, keys: int) -> Source:
        values = [V0, V1][: self.chance.choice((1, 2))]
        name = f"MATRIX_{next(self.numbers)}"
        return Source(name, format_, kind, [K0, K1][:keys], values, self.said())

    def combination(self, source: Source, way: str) -> Combination:
        made = [
            [Field(f"R{i}", "INT", int(v.value) + 1000 + i) for v in V0]
            for i in range(self.chance.choice((1, 2)))
        ]
        selected = [f"V0 + {1000 + i} AS R{i}" for i in range(len(made))]
        every = [*source.keys, *source.values]
        keys, clause, origin, sink = source.keys, "", source.name, None
        if way in ("partition", "group"):
            keys = every[-1:] if self.chance.random() < 0.5 else every[-2:]
            clause = f" {way.upper()} BY {', '.join(c[0].name for c in keys)}"
        if way == "group":
            counts = ("COUNT(*)", "BIGINT", lambda v: 1), ("SUM(V0)", "INT", lambda v: v.value)
            counts = counts[: len(made)]
            made = [
                [Field(f"R{i}", type_, of(v)) for v in V0]
                for i, (_, type_, of) in enumerate(counts)
            ]
            selected = [f"{text} AS R{i}" for i, (text, _, _) in enumerate(counts)]
        if way.startswith("join"):
            keys = [every[0] if source.keys else V0]
            # The other side says the opposite: what counts is the left one.
            other = f"RIGHT_{source.format}_{not source.said.wrap('value')}".upper()
            table = way != "join streams"
            within = "" if table else "WITHIN 1 HOUR "
            name = keys[0][0].name
            origin = f"{source.name} L JOIN {other}{'_TABLE' if table else ''} R {within}"
            origin += f"ON L.{name} = R.K"
            selected[-1] = f"R.W AS R{len(made) - 1}"
            made[-1] = [Field(f"R{len(made) - 1}", "INT", RIGHT[k.value]) for k in keys[0]]
        if way == "insert":
            sink = self.said()
        names = [f"L.{c[0].name}" if way.startswith("join") else c[0].name for c in keys]
        return Combination(
            source,
            f"{source.name}_{next(self.numbers)}",
            way,
            Wraps() if sink else self.chance.choice(VALID),
            keys,
            made,
            f"SELECT {', '.join([*names, *selected])} FROM {origin}{clause}",
            self.said().settings,
            sink,
        )

    def group(self, number: int) -> Iterator[Combination]:
        """Of each format a stream, one without a key, and a table, with some queries each. Those
        that keep state are slow, and take turns: on streams in one format, on tables in the
        other."""
        round_, on_streams = divmod(number, len(FORMATS))
        for place, format_ in enumerate(FORMATS):
            streams = place == on_streams
            stream = self.source(format_, "STREAM", self.chance.choice((1, 2)))
            states = ("group", "join streams", "join with table")
            for way in ("plain", "partition", "insert", states[round_] if streams else "plain"):
                yield self.combination(stream, way)
            keyless = self.source(format_, "STREAM", 0)
            for way in ("plain", ("partition", "insert")[number % 3 == 0]):
                yield self.combination(keyless, way)
            table = self.source(format_, "TABLE", (1, 2, 1)[round_])
            states = ("join tables", "group", "join tables")
            for way in ("plain", "plain", *([] if streams else states[round_ : round_ + 1])):
                yield self.combination(table, way)


@pytest.fixture(scope="module")
def sample(seed: int) -> list[list[Combination]]:
    chosen = Sample(seed)
    return [list(chosen.group(number)) for number in range(GROUPS)]


@pytest.fixture(scope="module")
def rights(records: Records) -> None:
    """What is joined: streams and tables of a key and a value, bare and wrapped."""
    for format_, wrap in itertools.product(FORMATS, (True, False)):
        name = f"RIGHT_{format_}_{wrap}".upper()
        rows = [
            ((Field("K", "INT", k),), (Field("W", "INT", w),)) for k, w in sorted(RIGHT.items())
        ]
        key, value = (
            records.encoder(format_, f"{name}-{side}", rows[0][i], wrap)
            for i, side in enumerate(("key", "value"))
        )
        records.scene.topic(name)
        records.write(name, *((key(k), value(v)) for k, v in rows))
        for kind, word, end in (("STREAM", "KEY", ""), ("TABLE", "PRIMARY KEY", "_TABLE")):
            records.scene.sql(
                f"CREATE {kind} {name}{end} (K INT {word}, W INT) WITH (KAFKA_TOPIC='{name}', "
                f"FORMAT='{format_}', WRAP_SINGLE_FIELDS={wrap});"
            )


def feed(records: Records, source: Source) -> None:
    """The source's rows as another program writes them, in the form that the source expects."""
    sides = {"key": picked(source.keys), "value": picked(source.values)}
    key, value = (
        records.encoder(source.format, f"{source.name}-{side}", rows[0], source.said.wrap(side))
        for side, rows in sides.items()
    )
    records.scene.topic(source.name)
    at = 20_000  # after all rows that they are joined with
    records.write(
        source.name, *((key(k), value(v)) for k, v in zip(*sides.values(), strict=True)), at=at
    )


@pytest.mark.heavy
@pytest.mark.parametrize("number", range(GROUPS))
def test_a_group_of_combinations(records: Records, rights, sample, number: int):
    scene, group = records.scene, sample[number]
    started = []
    for source in dict.fromkeys(c.source.name for c in group):
        (declared, *_) = (c.source for c in group if c.source.name == source)
        feed(records, declared)
        scene.sql(declared.statement, **declared.said.settings)
    for combination in group:
        if (sink := combination.declared_sink) is not None:
            scene.sql(sink.statement, **sink.said.settings)
        started.append(scene.create(combination.statement, **combination.settings))
    wrong = []
    for combination in group:
        form = combination.source.format
        seen = records.read(combination.name, len(NUMBERS), form, form)
        if seen != combination.expected:
            wrong.append((combination.source.statement, combination, seen, combination.expected))
    assert not wrong
    scene.sql("".join(f"TERMINATE {query_id};" for query_id in started))


def test_the_sample_is_wide(sample):
    """At least a hundred combinations, half of them in AVRO, of every kind."""
    chosen = [c for group in sample for c in group]
    assert len(chosen) >= 100
    assert sum(c.source.format == "AVRO" for c in chosen) * 2 >= len(chosen)
    every = {"plain", "partition", "insert", "group", "join streams", "join with table"}
    for format_ in FORMATS:
        ways = {c.way for c in chosen if c.source.format == format_}
        assert ways == every | {"join tables"}
    for side in ("key", "value"):
        assert {c.source.said.wrap(side) for c in chosen} == {True, False}
        assert {c.wrap(side) for c in chosen} == {True, False}
    assert any(not c.source.keys for c in chosen)
