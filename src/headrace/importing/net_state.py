"""From the history of a ksqlDB to what is left of it: the statements that make its present state.

Sources that were dropped, queries that were terminated and statements that were replaced are left
out. What is left keeps its order, except where a statement reads what was made anew after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from headrace.importing.recorded import Recorded, Unreadable
from headrace.model.errors import ParseError
from headrace.model.types import SqlType
from headrace.model.types import walk as walk_type
from headrace.sql import ast
from headrace.sql.parser import parse_statement
from headrace.sql.tokens import tokenize

_Test = Callable[["Step"], bool]
_Change = Callable[[Recorded], Recorded]
_TERMINATE_CLUSTER = ["TERMINATE", "CLUSTER"]


@dataclass(frozen=True)
class Step:
    """A statement that is to be made again."""

    recorded: Recorded
    statement: ast.Statement

    @property
    def name(self) -> str:
        """Of the type, source or setting that it is about."""
        match self.statement:
            case ast.InsertInto(target):
                return target
            case (
                ast.CreateSource(name)
                | ast.CreateAsSelect(name)
                | ast.CreateType(name)
                | ast.AlterSource(name)
                | ast.AlterSystem(name)
            ):
                return name
        raise AssertionError(self.statement)

    @property
    def needs(self) -> frozenset[str]:
        """The types and sources that have to be there before."""
        match self.statement:
            case ast.CreateSource(elements=elements):
                return _types(e.type for e in elements)
            case ast.CreateType(type=type_):
                return _types([type_])
            case ast.CreateAsSelect(query=query):
                return read_by(query)
            case ast.InsertInto(target, query):
                return read_by(query) | {f"source {target}"}
            case ast.AlterSource(name):
                return frozenset({f"source {name}"})
        return frozenset()

    @property
    def gives(self) -> str | None:
        match self.statement:
            case ast.CreateSource() | ast.CreateAsSelect():
                return f"source {self.name}"
            case ast.CreateType():
                return f"type {self.name.upper()}"
        return None


def read_by(query: ast.Query) -> frozenset[str]:
    relation = query.source
    if isinstance(relation, ast.Join):
        relations = [relation.left, *(joined.relation for joined in relation.sources)]
    else:
        relations = [relation]
    return frozenset(f"source {one.name}" for one in relations)


def _types(types: Iterable[SqlType]) -> frozenset[str]:
    return frozenset(
        f"type {part.name.upper()}"
        for type_ in types
        for part in walk_type(type_)
        if isinstance(part, ast.TypeRef)
    )


@dataclass(frozen=True)
class NetState:
    """What makes the present state, in order; what cannot be read; what is left out, and why."""

    steps: tuple[Step, ...]
    unreadable: tuple[Unreadable, ...]
    left_out: tuple[tuple[Recorded, str], ...]

    @staticmethod
    def of(entries: Iterable[Recorded | Unreadable]) -> NetState:
        state = _State()
        for entry in entries:
            if isinstance(entry, Unreadable):
                state.unreadable.append(entry)
            else:
                state.take(entry)
        return NetState(tuple(ordered(state.steps)), tuple(state.unreadable), tuple(state.left_out))


class _State:
    """What is there after the statements so far."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.unreadable: list[Unreadable] = []
        self.left_out: list[tuple[Recorded, str]] = []

    def take(self, recorded: Recorded) -> None:
        if [t.text.upper() for t in tokenize(recorded.text).tokens[:2]] == _TERMINATE_CLUSTER:
            self._forget(lambda step: True, "the cluster was terminated later")
            return
        try:
            statement = parse_statement(recorded.text)
        except ParseError as error:
            reason = f"{error}\nStatement: {recorded.text}"
            self.unreadable.append(Unreadable(recorded.place, reason))
            return
        self._apply(Step(recorded, statement))

    def _apply(self, step: Step) -> None:
        match step.statement:
            case ast.CreateSource() | ast.CreateAsSelect() | ast.CreateType():
                self._create(step)
            case ast.InsertInto() | ast.AlterSource():
                self.steps.append(step)
            case ast.AlterSystem():
                self._forget(lambda s: _same(s, step), "the setting was changed again later")
                self.steps.append(step)
            case ast.DropSource(name):
                self._forget(lambda s: _is_of(s, name), "it was dropped later")
            case ast.DropType(name):
                self._forget(lambda s: s.gives == f"type {name.upper()}", "it was dropped later")
            case ast.TerminateQuery(query_id):
                self._terminate(query_id)
            case ast.PauseQuery(query_id) | ast.ResumeQuery(query_id):
                paused = isinstance(step.statement, ast.PauseQuery)
                self._change(query_id, lambda r: replace(r, paused=paused))
            case _:
                self.left_out.append((step.recorded, _why_left_out(step.statement)))

    def _create(self, step: Step) -> None:
        there = next((i for i, s in enumerate(self.steps) if s.gives == step.gives), None)
        if there is None:
            self.steps.append(step)
            return
        statement = step.statement
        if isinstance(statement, ast.CreateSource | ast.CreateAsSelect):
            replaces = not statement.if_not_exists
        else:
            replaces = False
        if not replaces:
            self.left_out.append((step.recorded, "it was there already"))
            return
        # It takes the place of what it replaces: others have read that in the meantime.
        self.left_out.append((self.steps[there].recorded, "it was replaced later"))
        self.steps[there] = step
        altered = ast.AlterSource
        self._forget(
            lambda s: isinstance(s.statement, altered) and s.name == step.name,
            "its source was replaced later",
        )

    def _terminate(self, query_id: str | None) -> None:
        def is_insert(step: Step) -> bool:
            return isinstance(step.statement, ast.InsertInto) and _runs(step, query_id)

        self._forget(is_insert, "its query was terminated later")
        self._change(query_id, lambda r: replace(r, ended=True))

    def _change(self, query_id: str | None, change: _Change) -> None:
        self.steps = [
            replace(s, recorded=change(s.recorded)) if _runs(s, query_id) else s for s in self.steps
        ]

    def _forget(self, is_gone: _Test, why: str) -> None:
        self.left_out += [(s.recorded, why) for s in self.steps if is_gone(s)]
        self.steps = [s for s in self.steps if not is_gone(s)]


def _same(step: Step, other: Step) -> bool:
    return type(step.statement) is type(other.statement) and step.name == other.name


def _is_of(step: Step, source: str) -> bool:
    """Whether the step is gone with the source."""
    altered = isinstance(step.statement, ast.AlterSource) and step.name == source
    return altered or step.gives == f"source {source}"


def _runs(step: Step, query_id: str | None) -> bool:
    """Whether a statement's query is the one named, or any if that is None."""
    if not isinstance(step.statement, ast.CreateAsSelect | ast.InsertInto):
        return False
    if query_id is None:
        return True
    known = step.recorded.query_id
    if known is not None:
        return known.upper() == query_id.upper()
    # A script knows the names of its queries as far as their numbers.
    prefix, _, _ = query_id.upper().rpartition("_")
    return prefix in (f"CSAS_{step.name.upper()}", f"CTAS_{step.name.upper()}")


def _why_left_out(statement: ast.Statement) -> str:
    if isinstance(statement, ast.InsertValues):
        return "it wrote a record, which is in its topic"
    if isinstance(statement, ast.CreateConnector | ast.DropConnector):
        return "connectors run in Kafka Connect, whoever asked for them, and stay there"
    if statement.effect is ast.Effect.CHANGES:
        return "it is no part of what a ksqlDB keeps"
    return "it only asks"


def ordered(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps in their order, each after those that give what it needs."""
    waiting = list(steps)
    given = {step.gives for step in waiting}
    there: set[str | None] = set()
    while waiting:
        ready = next((s for s in waiting if s.needs & given <= there), waiting[0])
        waiting.remove(ready)
        there.add(ready.gives)
        yield ready
