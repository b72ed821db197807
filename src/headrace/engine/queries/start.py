"""Starts the persistent query of a statement, after checking its topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.engine.environment import Environment
from headrace.engine.queries.losses import Reader
from headrace.engine.queries.persistent import PersistentQuery
from headrace.engine.queries.program import (
    Program,
    Starts,
    exactly_once,
    mend_checkpoint,
    persistent_program,
)
from headrace.model.settings import Settings
from headrace.plan import nodes as n
from headrace.plan.query import Planned
from headrace.spark.rows.optimistic import OptimisticDecoding


@dataclass(frozen=True)
class Starting:
    """A query as its command describes it. `starts` are its first offsets, `life` is the id of the
    command log; `log` takes entries of the processing log."""

    id: str
    statement: str
    settings: Mapping[str, str]
    starts: Starts
    life: str
    log: Callable[[Sequence[str]], None]

    def query(self, env: Callable[[], Environment], plan: Callable[[], Planned]) -> PersistentQuery:
        checkpoint = f"{env().state_dir}/{env().service_id}/{self.id}"

        def build(planned: Planned, decoding: OptimisticDecoding, accept: bool) -> Program:
            return self._program(env(), planned, checkpoint, decoding, accept)

        return PersistentQuery(self.id, self.statement, plan, build, checkpoint, self.settings)

    def _program(
        self,
        env: Environment,
        planned: Planned,
        checkpoint: str,
        decoding: OptimisticDecoding,
        accept: bool,
    ) -> Program:
        node, settings = planned.node, Settings(self.settings)
        assert isinstance(node, n.Write)
        mend_checkpoint(env, self.id, settings, checkpoint)
        topics = [source.topic for source in n.sources(node)]
        reader = Reader(self.id, checkpoint, topics, self.starts, exactly_once(settings), self.life)
        reading = reader.settle(env, accept, self.log)
        program = persistent_program(
            env, self.id, node, settings, reading.starts, checkpoint, decoding
        )
        return replace(program, reading=reading)
