"""All workloads, in the order in which they run and are shown."""

from __future__ import annotations

from headrace.bench.jobs import Job
from headrace.bench.measures import Measure
from headrace.bench.workloads import (
    aggregates,
    client_requests,
    functions,
    growth,
    joins,
    json_records,
    latency,
    many_queries,
    push_rows,
    server,
    stateless,
)

JOBS: tuple[Job, ...] = (*stateless.JOBS, *aggregates.JOBS, *joins.JOBS)
MEASURES: tuple[Measure, ...] = (
    *latency.MEASURES,
    *client_requests.MEASURES,
    *push_rows.MEASURES,
    *many_queries.MEASURES,
    *growth.MEASURES,
    *functions.MEASURES,
    *json_records.MEASURES,
    *server.MEASURES,
)
