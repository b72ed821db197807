"""Runs cases: some are only planned, the others share a broker and a Spark session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from headrace.model.errors import HeadraceError
from headrace.model.settings import Settings
from headrace.testing.cases import Case, RecordCase, ServerCase
from headrace.testing.outcomes import CaseFailure, Outcome, Result, error_text
from headrace.testing.planning import check_planning
from headrace.testing.scripts import plan_script
from headrace.testing.sql_files import ScriptCase

# Runs one case; returns if it did what it should, raises CaseFailure if not.
Run = Callable[[Case], None]


def run_cases(
    cases: Sequence[Case],
    jobs: int,
    announce: Callable[[str], None],
    settings: Settings,
    *,
    plan_only: bool = False,
    direct: bool = False,
    every_record: bool = False,
) -> Iterator[Outcome]:
    """The outcomes as they come. The properties of a case come on top of the settings. With
    `every_record`, a SQL case has to expect all records of a topic, if it expects any."""
    cases = [_passed_over(case, plan_only, direct) for case in cases]
    moving = [] if plan_only else [c for c in cases if c.skip is None and c.runs_queries]
    later = set(map(id, moving))
    for case in cases:
        if id(case) not in later:
            yield judged_run(case, partial(_plan, settings))
    if not moving:
        return
    from headrace.testing.services import CaseServices  # brings Kafka and Spark along

    with ExitStack() as parts:
        services = parts.enter_context(
            CaseServices(announce, settings, direct=direct, every_record=every_record)
        )
        pool = parts.enter_context(ThreadPoolExecutor(jobs, "case"))
        futures = [pool.submit(judged_run, case, services.run) for case in moving]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:  # also Ctrl-C: no further case is started
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _passed_over(case: Case, plan_only: bool, direct: bool) -> Case:
    if isinstance(case, ServerCase) and case.skip is None and (plan_only or direct):
        return replace(case, skip="it asks a server, which needs Kafka")
    return case


def judged_run(case: Case, run: Run) -> Outcome:
    if case.skip is not None:
        return Outcome(case, Result.SKIPPED, case.skip)
    began = time.perf_counter()
    try:
        run(case)
    except CaseFailure as e:
        seconds = time.perf_counter() - began
        return Outcome(case, Result.FAILED, e.reason, e.expected, e.actual, seconds)
    except HeadraceError as e:
        seconds = time.perf_counter() - began
        return Outcome(case, Result.FAILED, "an error", "", error_text(e), seconds)
    except Exception as e:  # a bug of ours must not end the run
        seconds = time.perf_counter() - began
        return Outcome(case, Result.FAILED, "a crash", "", f"{type(e).__name__}: {e}", seconds)
    return Outcome(case, Result.PASSED, seconds=time.perf_counter() - began)


def _plan(settings: Settings, case: Case) -> None:
    match case:
        case RecordCase():
            check_planning(case, settings)
        case ScriptCase():
            plan_script(case, settings)
        case _:
            raise TypeError(f"{type(case).__name__} is no kind of case")
