"""The language, case by case: `tests/sql_cases/*.sql`, each `--@test` a test of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.model.settings import Settings
from headrace.testing.case_runner import run_cases
from headrace.testing.files import load_cases
from headrace.testing.outcomes import Result
from headrace.testing.rehearsal import TEST_SETTINGS

CASES = load_cases([Path(__file__).parents[1] / "sql_cases"])


def _parameter(case):
    return pytest.param(case, id=case.label, marks=[pytest.mark.heavy] if case.runs_queries else [])


@pytest.fixture(scope="module")
def outcomes(request):
    """What became of the cases that this run of pytest has chosen, by their labels."""
    chosen = [
        item.callspec.params["case"]
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    ]
    settings = Settings(TEST_SETTINGS)
    jobs = os.cpu_count() or 2
    ran = run_cases(chosen, jobs, lambda text: None, settings, direct=True, every_record=True)
    return {outcome.case.label: outcome for outcome in ran}


@pytest.mark.parametrize("case", [_parameter(case) for case in CASES])
def test_case(case, outcomes):
    outcome = outcomes[case.label]
    shown = f"{outcome.reason}\nexpected: {outcome.expected}\nactual:   {outcome.actual}"
    assert outcome.result is Result.PASSED, shown


def test_labels_tell_cases_apart():
    assert len({case.label for case in CASES}) == len(CASES)
