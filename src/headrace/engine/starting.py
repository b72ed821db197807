"""Persistent queries of statements: each finds out what its topics are before it reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.engine.losses import Reader
from headrace.engine.queries import PersistentQuery
from headrace.engine.running import (
    Program,
    Starts,
    exactly_once,
    mend_checkpoint,
    persistent_program,
)
from headrace.engine.world import World
from headrace.model.settings import Settings
from headrace.plan import nodes as n
from headrace.plan.query import Planned
from headrace.spark.hope import Hope


@dataclass(frozen=True)
class Starting:
    """A query as its command tells it. `starts` is where it begins to read, `life` the id of the
    command log; `log` takes entries of the processing log."""

    id: str
    statement: str
    settings: Mapping[str, str]
    starts: Starts
    life: str
    log: Callable[[Sequence[str]], None]

    def query(self, world: Callable[[], World], plan: Callable[[], Planned]) -> PersistentQuery:
        checkpoint = f"{world().state_dir}/{world().service_id}/{self.id}"

        def build(planned: Planned, hope: Hope, accept: bool) -> Program:
            return self._program(world(), planned, checkpoint, hope, accept)

        return PersistentQuery(self.id, self.statement, plan, build, checkpoint, self.settings)

    def _program(
        self, world: World, planned: Planned, checkpoint: str, hope: Hope, accept: bool
    ) -> Program:
        node, settings = planned.node, Settings(self.settings)
        assert isinstance(node, n.Write)
        mend_checkpoint(world, self.id, settings, checkpoint)
        topics = [source.topic for source in n.sources(node)]
        reader = Reader(self.id, checkpoint, topics, self.starts, exactly_once(settings), self.life)
        reading = reader.settle(world, accept, self.log)
        program = persistent_program(
            world, self.id, node, settings, reading.starts, checkpoint, hope
        )
        return replace(program, reading=reading)
