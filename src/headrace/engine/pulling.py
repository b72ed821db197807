"""Pull queries: what a table or stream holds now, then the answer ends."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headrace.engine.running import bounded, context_for
from headrace.engine.world import World
from headrace.model.requests import LIMIT_REACHED, QUERY_COMPLETED, QueryKind, ResultRow
from headrace.model.schema import Schema
from headrace.model.settings import Settings
from headrace.plan import nodes as n
from headrace.plan.pull import PullPlan
from headrace.spark.answers import result_rows
from headrace.spark.program import lower_node


@dataclass
class PullAnswer:
    """Rows that are all there already."""

    schema: Schema
    rows: Sequence[ResultRow]
    final_message: str | None = QUERY_COMPLETED
    kind: QueryKind = QueryKind.PULL
    id: str = field(default_factory=lambda: f"query_{uuid.uuid4().hex[:20]}")
    _given: bool = False

    def next_batch(self, timeout: float) -> Sequence[ResultRow] | None:
        if self._given:
            return None
        self._given = True
        return self.rows

    def close(self) -> None:
        self._given = True


def pull(world: World, plan: PullPlan, settings: Settings) -> PullAnswer:
    """Reads the topic up to its end as of now. Of a table's rows the last of each key counts."""
    ends = {plan.source.topic: world.admin.end_offsets(plan.source.topic)}
    read_records = bounded(world, ends)

    def read(source: n.ReadSource, headers: bool) -> DataFrame:
        records = read_records(source, headers)
        return _latest(records) if plan.source.is_table else records

    context = context_for(world, "pull", settings, read)
    rows = [r for r in result_rows(lower_node(plan.node, context), plan.schema) if not r.tombstone]
    if plan.limit is not None and len(rows) >= plan.limit:
        return PullAnswer(plan.schema, rows[: plan.limit], LIMIT_REACHED)
    return PullAnswer(plan.schema, rows)


def _latest(records: DataFrame) -> DataFrame:
    """The last record of each key; a deleted row's last record has no value."""
    last = (
        records.where(F.col("key").isNotNull())
        .groupBy("key")
        .agg(
            F.max_by(F.struct(*(c for c in records.columns if c != "key")), F.col("offset")).alias(
                "last"
            )
        )
    )
    return last.select("key", "last.*").where(F.col("value").isNotNull())
