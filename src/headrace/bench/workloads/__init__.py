"""All workloads, in the order in which they run and are shown."""

from __future__ import annotations

from headrace.bench.jobs import Job
from headrace.bench.measures import Measure
from headrace.bench.workloads import (
    aggregates,
    answers,
    functions,
    growth,
    joins,
    latency,
    queries,
    server,
    stateless,
)

JOBS: tuple[Job, ...] = (*stateless.JOBS, *aggregates.JOBS, *joins.JOBS)
MEASURES: tuple[Measure, ...] = (
    *latency.MEASURES,
    *answers.MEASURES,
    *queries.MEASURES,
    *growth.MEASURES,
    *functions.MEASURES,
    *server.MEASURES,
)
