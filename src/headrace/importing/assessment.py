"""Assesses an import, statement by statement: what moves as it is, what differs and how, what
cannot move and why. All are assessed, on the planner of the server, before the first is sent."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from headrace.engine.statements.changes import Change
from headrace.formats import format_named
from headrace.importing.existing import Existing
from headrace.importing.missing_functions import (
    MissingFunction,
    all_of,
    described,
    guessed,
    missing_functions,
)
from headrace.importing.net_state import NetState, Step, ordered, read_by
from headrace.importing.planning import Facts, Rehearsal
from headrace.importing.recorded import PROCESSING_LOG, History, Recorded
from headrace.importing.settings import RESET, WRAP_VALUES, moved_settings
from headrace.importing.starts import Beginning, Committed, Offsets, Start, rebuilt_topics
from headrace.importing.translation import (
    START_FROM,
    TOPIC,
    WRAP,
    comparable,
    declaration,
    property_of,
    says_wrapping,
    sink_topic,
    translated,
    with_property,
    with_topics,
)
from headrace.kafka.admin import TopicAdmin
from headrace.model.entities import SchemaInfo
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.sources import Source
from headrace.model.types import SqlType
from headrace.plan import nodes as n
from headrace.plan.language.binder import resolve_type
from headrace.plan.sources.ddl import declared_schema
from headrace.plan.sources.start_from import start_from_text
from headrace.registry.client import RegistryClient
from headrace.sql import ast
from headrace.sql.parser import parse_statement
from headrace.sql.printer import format_statement


class Verdict(Enum):
    AS_IS = "moves as it is"
    DIFFERS = "moves, with differences"
    CANNOT = "cannot move"
    THERE = "is there already"


@dataclass(frozen=True)
class Item:
    """A statement and what becomes of it. `text` is what is sent, under `settings`; `remarks` say
    how it keeps its meaning, `notes` how it does not, or why it cannot move. `group` is the
    consumer group of its query in ksqlDB."""

    place: str
    title: str
    verdict: Verdict
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    text: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    paused: bool = False
    group: str | None = None


@dataclass(frozen=True)
class Assessment:
    """Everything an origin has, in the order in which it is sent. `settings` says which of its
    settings do not move, and why."""

    origin: str
    items: tuple[Item, ...]
    left_out: tuple[tuple[Recorded, str], ...] = ()
    settings: tuple[str, ...] = ()
    functions: tuple[MissingFunction, ...] = ()

    def of(self, *verdicts: Verdict) -> list[Item]:
        return [item for item in self.items if item.verdict in verdicts]


@dataclass(frozen=True)
class Surroundings:
    """Where it goes: what Kafka and the registry know, if they are known; what the server has."""

    admin: TopicAdmin | None = None
    registry: RegistryClient | None = None
    existing: Existing = field(default_factory=Existing)


@dataclass(frozen=True)
class Wishes:
    """How: `suffix` is put behind the topics that queries write, for a run beside ksqlDB."""

    suffix: str = ""
    start: Start = Start.COMMITTED


def assess(
    history: History,
    wishes: Wishes | None = None,
    surroundings: Surroundings | None = None,
) -> Assessment:
    net = NetState.of(history.entries)
    assessor = _Assessor(history, net, wishes or Wishes(), surroundings or Surroundings())
    unreadable = [Item(u.place, u.place, Verdict.CANNOT, (u.reason,)) for u in net.unreadable]
    items = [assessor.item(step) for step in net.steps]
    return Assessment(
        history.origin,
        (*unreadable, *items),
        net.left_out,
        tuple(dict.fromkeys(assessor.settings)),
        tuple(all_of(assessor.functions)),
    )


class _Cannot(HeadraceError):
    """Why a statement cannot move."""


@dataclass
class _Draft:
    """A statement while it is assessed."""

    step: Step
    statement: ast.Statement
    settings: dict[str, str]
    notes: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def say(self, name: str, value: ast.Literal) -> None:
        """Puts a property into its WITH clause."""
        assert isinstance(self.statement, ast.CreateSource | ast.CreateAsSelect | ast.InsertInto)
        self.statement = with_property(self.statement, name, value)


class _Assessor:
    def __init__(
        self, history: History, net: NetState, wishes: Wishes, surroundings: Surroundings
    ) -> None:
        self.functions: list[MissingFunction] = []
        self.settings: list[str] = []
        self._history = history
        self._wishes = wishes
        self._around = surroundings
        self._rehearsal = Rehearsal(Facts(surroundings.admin, surroundings.registry))
        self._failed: dict[str, str] = {}
        self._inserts = list(surroundings.existing.inserts)
        self._made = {step.gives for step in net.steps}
        self._chains = _chains(net)
        self._outputs = _outputs(net)
        self._moved = {t: t + wishes.suffix for t in self._outputs} if wishes.suffix else {}
        self._committed: dict[str, Committed] = {}
        self._foreign = self._known_at_the_server()

    def item(self, step: Step) -> Item:
        moved = moved_settings(step.recorded)
        self.settings += moved.notes
        draft = _Draft(step, translated(step.statement), dict(moved.values))
        try:
            is_there = self._assess(draft)
        except HeadraceError as error:
            return self._failure(step, str(error))
        return Item(
            step.recorded.place,
            _title(step),
            _verdict(is_there, draft),
            tuple(draft.notes),
            tuple(draft.remarks),
            _text(draft),
            draft.settings,
            step.recorded.paused,
            None if step.recorded.ended else step.recorded.group,
        )

    def _failure(self, step: Step, reason: str) -> Item:
        if step.gives is not None:
            self._failed[step.gives] = _title(step)
        return Item(step.recorded.place, _title(step), Verdict.CANNOT, (reason,))

    def _known_at_the_server(self) -> frozenset[str]:
        """Puts the server's other types and sources into the catalog: the import may use them.
        How their single values lie is not known."""
        others = [
            Step(Recorded(format_statement(statement), ""), statement)
            for statement in self._around.existing.statements()
        ]
        planned = set()
        for step in ordered(s for s in others if s.gives is not None and s.gives not in self._made):
            with suppress(HeadraceError):  # whoever reads it is told that it is not there
                settings = moved_settings(step.recorded).values
                self._rehearsal.accept(self._rehearsal.plan(step.statement, settings))
                planned.add(str(step.gives))
        return frozenset(planned)

    # ------------------------------------------------------------------------- one statement

    def _assess(self, draft: _Draft) -> bool:
        """Plans the statement as it will be sent. Whether the server has it already."""
        self._check_needs(draft.step)
        self._check_functions(draft)
        self._move_topics(draft)
        self._check_topic(draft)
        change = self._rehearsal.plan(draft.statement, draft.settings)
        if change.creates is not None:
            self._check_columns(draft, change.creates)
            self._keep_wrapping(draft, change.creates)
        if draft.step.recorded.ended:
            self._declare(draft, change)
        elif change.starts is not None:
            self._begin(draft, change.starts.planned.node)
        change = self._rehearsal.plan(draft.statement, draft.settings)
        draft.notes += change.warnings
        is_there = self._is_there(draft)
        self._rehearsal.accept(change)
        return is_there

    def _check_needs(self, step: Step) -> None:
        for needed in sorted(step.needs):
            if needed in self._failed:
                raise _Cannot(f"It needs {self._failed[needed]}, which cannot move.")

    def _check_functions(self, draft: _Draft) -> None:
        calls = missing_functions(draft.statement)
        if not calls:
            return
        columns = self._columns_read(draft.statement)
        for call in calls:
            told = self._history.functions.get(call.name.upper())
            known = described(call.name.upper(), told) if told else guessed(call, columns)
            self.functions.append(known)
        names = ", ".join(call.name.upper() for call in calls)
        several = len(calls) > 1
        raise _Cannot(
            f"It calls {names}, which Headrace does not have: "
            + ("Java functions of your ksqlDB. " if several else "a Java function of your ksqlDB. ")
            + f"Write {'them' if several else 'it'} in Python (see below), put "
            f"{'them' if several else 'it'} into the server's ksql.extension.dir, and give that "
            "directory here as --extensions."
        )

    def _columns_read(self, statement: ast.Statement) -> Mapping[str, SqlType]:
        if not isinstance(statement, ast.CreateAsSelect | ast.InsertInto):
            return {}
        names = [name.removeprefix("source ") for name in read_by(statement.query)]
        sources = [self._rehearsal.catalog.source(name) for name in names]
        return {c.name: c.type for source in sources if source for c in source.schema}

    # ------------------------------------------------------------------------------- topics

    def _move_topics(self, draft: _Draft) -> None:
        """Gives the statement the topics of a parallel run."""
        statement = draft.statement
        if not self._moved or not isinstance(statement, ast.CreateSource | ast.CreateAsSelect):
            return
        if isinstance(statement, ast.CreateAsSelect):
            draft.say(TOPIC, ast.StringLiteral(sink_topic(statement, draft.settings)))
        before = property_of(statement, TOPIC)
        draft.statement = with_topics(draft.statement, lambda topic: self._moved.get(topic, topic))
        if isinstance(statement, ast.CreateSource) and before in self._moved:
            if property_of(statement, "PARTITIONS") is None:
                partitions = self._rehearsal.facts.partitions(str(before)) or 1
                draft.say("PARTITIONS", ast.IntegerLiteral(partitions))
            draft.notes.append(
                f"Queries write to it, so that it is over topic '{self._moved[str(before)]}' here: "
                f"what others write to '{before}' is not in it."
            )

    def _check_topic(self, draft: _Draft) -> None:
        """Refuses a source over a topic that has gone since ksqlDB knew it."""
        statement, admin = draft.statement, self._around.admin
        if not isinstance(statement, ast.CreateSource) or admin is None:
            return
        topic = str(property_of(statement, TOPIC))
        made_here = topic in self._outputs or topic in self._moved.values()
        if self._history.has_run and not made_here and not admin.exists(topic):
            raise _Cannot(
                f"Its topic '{topic}' is gone from Kafka, so that whatever reads it could not run. "
                "Make the topic again, or drop the source in ksqlDB."
            )

    # ------------------------------------------------------------------------------ meaning

    def _check_columns(self, draft: _Draft, source: Source) -> None:
        """Refuses a statement that would give other columns than it gave in ksqlDB."""
        told = draft.step.recorded.schema
        if told is None:
            return
        columns = _columns(told)
        if columns is not None and columns != {str(c) for c in source.schema}:
            raise _Cannot(
                f"Its columns would be {source.schema}, and were {told} in ksqlDB. What it reads "
                "may have been replaced or altered since: write its columns out."
            )

    def _keep_wrapping(self, draft: _Draft, source: Source) -> None:
        """Single values stay as ksqlDB writes them: it does not ask the source of a query."""
        statement = draft.statement
        assert isinstance(statement, ast.CreateSource | ast.CreateAsSelect | ast.AlterSource)
        if isinstance(statement, ast.AlterSource) or says_wrapping(statement):
            return
        if len(source.schema.value) != 1 or not format_named(source.value.format).wraps_or_not:
            return
        recorded = draft.step.recorded.wrapped
        meant = recorded if recorded is not None else draft.settings[WRAP_VALUES] == "true"
        if source.value.wrap != meant or draft.step.needs & self._foreign:
            draft.say(WRAP, ast.BooleanLiteral(meant))
            form = "a record with one field" if meant else "bare"
            draft.remarks.append(f"Its single value stays {form}, as ksqlDB has it.")

    def _declare(self, draft: _Draft, change: Change) -> None:
        source = change.creates
        assert source is not None
        partitions = change.topic.partitions if change.topic is not None else None
        draft.statement = declaration(source, partitions)
        draft.notes.append(
            "Its query was terminated in ksqlDB: it is declared over its topic, without a query."
        )

    # ----------------------------------------------------------------------------- offsets

    def _begin(self, draft: _Draft, node: n.Node) -> None:
        """Says where its query begins."""
        assert isinstance(node, n.Write)
        recorded, start = draft.step.recorded, self._wishes.start
        if start is not Start.COMMITTED:
            draft.settings[RESET] = start.value
            draft.remarks.append(f"Its query reads from {start.value}.")
        elif self._around.admin is None or recorded.group is None:
            built = [topic for topic, rebuilt in rebuilt_topics(node).items() if rebuilt]
            if built:
                topics = ", ".join(f"'{topic}'" for topic in built)
                draft.notes.append(f"Its state is built anew from {topics}.")
        else:
            offsets = Offsets(self._around.admin, self._offsets_of, set(self._moved.values()))
            begin = offsets.beginning(node, recorded.group, draft.settings[RESET], recorded.at)
            self._say_beginning(draft, begin)
        if recorded.paused:
            draft.remarks.append("It is paused in ksqlDB, and is paused here.")

    def _say_beginning(self, draft: _Draft, begin: Beginning) -> None:
        draft.notes += begin.notes
        if begin.places:
            text = start_from_text(begin.places)
            draft.say(START_FROM, ast.StringLiteral(text))
            draft.remarks.append(f"Its query begins at {text}.")

    def _offsets_of(self, group: str) -> Committed:
        assert self._around.admin is not None
        if group not in self._committed:
            self._committed[group] = self._around.admin.group_positions(group)
        return self._committed[group]

    # --------------------------------------------------------------------- what is there

    def _is_there(self, draft: _Draft) -> bool:
        """Whether the server has what the statement makes; refuses if it has something else."""
        statement, existing = draft.statement, self._around.existing
        match statement:
            case ast.InsertInto():
                if comparable(statement) in self._inserts:
                    self._inserts.remove(comparable(statement))
                    return True
                return False
            case ast.CreateType(name, type_):
                known = {n.upper(): t for n, t in existing.types.items()}.get(name.upper())
                wanted = SchemaInfo.of(resolve_type(type_, self._rehearsal.catalog.type)).to_json()
                if known is not None and known != wanted:
                    raise _Cannot(f"The server has another type {name}.")
                return known is not None
            case ast.AlterSystem(name, value):
                return existing.settings.get(name) == value
        return self._source_is_there(draft)

    def _source_is_there(self, draft: _Draft) -> bool:
        name, existing = draft.step.name, self._around.existing
        if name == PROCESSING_LOG:
            draft.remarks.append("Headrace keeps a processing log of its own.")
            return True
        if name not in existing.sources:
            return False
        known = existing.sources[name]
        if isinstance(draft.statement, ast.AlterSource):
            done = [s.statement for s in self._chains[name]]
            reached = done.index(known) if known in done else -1
            return reached >= done.index(draft.step.statement)
        altered = known in [s.statement for s in self._chains[name][1:]]
        if known != comparable(draft.statement) and not altered:
            told = "" if known is None else f": {format_statement(known)}"
            raise _Cannot(f"The server has another {name}{told}")
        return True


# ------------------------------------------------------------------------------------ texts


def _verdict(is_there: bool, draft: _Draft) -> Verdict:
    if is_there:
        return Verdict.THERE
    return Verdict.DIFFERS if draft.notes else Verdict.AS_IS


def _text(draft: _Draft) -> str:
    """The statement as ksqlDB has it, if nothing had to be changed."""
    if draft.statement == draft.step.statement:
        return draft.step.recorded.text
    return format_statement(draft.statement)


def _title(step: Step) -> str:
    id_ = step.recorded.query_id
    query = f" (query {id_})" if id_ else ""
    match step.statement:
        case ast.CreateType():
            return f"type {step.name}"
        case ast.AlterSystem():
            return f"setting {step.name}"
        case ast.InsertInto():
            return f"insert into {step.name}{query}"
        case ast.AlterSource(source_kind=kind):
            return f"columns of {kind.value.lower()} {step.name}"
        case ast.CreateAsSelect(source_kind=kind):
            return f"{kind.value.lower()} {step.name}{query}"
        case ast.CreateSource(source_kind=kind):
            return f"{kind.value.lower()} {step.name}"
    return step.name


def _columns(schema: str) -> set[str] | None:
    """The columns of ksqlDB's text of a schema, in ours; None if it cannot be read."""
    kind = "TABLE" if "PRIMARY KEY" in schema else "STREAM"
    try:
        statement = parse_statement(f"CREATE {kind} S ({schema});")
    except StatementError:
        return None
    assert isinstance(statement, ast.CreateSource)
    declared = declared_schema(statement, statement.source_kind, lambda name: None)
    return {str(c) for c in declared}


def _chains(net: NetState) -> dict[str, list[Step]]:
    """By source, the statement that makes it and those that alter it."""
    chains: dict[str, list[Step]] = {}
    for step in net.steps:
        if isinstance(step.statement, ast.CreateSource | ast.CreateAsSelect | ast.AlterSource):
            chains.setdefault(step.name, []).append(step)
    return chains


def _outputs(net: NetState) -> set[str]:
    """The topics that queries write."""
    targets = {s.name for s in net.steps if isinstance(s.statement, ast.InsertInto)}
    topics = set()
    for step in net.steps:
        match step.statement:
            case ast.CreateAsSelect() if not step.recorded.ended:
                topics.add(sink_topic(step.statement, moved_settings(step.recorded).values))
            case ast.CreateSource(name) if name in targets:
                topics.add(str(property_of(step.statement, TOPIC)))
    return topics
