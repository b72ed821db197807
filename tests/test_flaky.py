"""How `make test` deals with a test that fails once: the same seed again, and nothing is hidden."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import flaky

ROOT = Path(__file__).parents[1]
ONCE = """
import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy
SEEDS = Path("seeds.txt")


def test_fails_once():
    first = not SEEDS.exists()
    with SEEDS.open("a") as seeds:
        seeds.write(os.environ["SEED"] + "\\n")
    assert not first


def test_good():
    pass


@pytest.mark.parametrize("bad", [True, "ALWAYS" not in os.environ])
def test_sometimes(bad):
    assert bad
"""


VARIABLES = {k: v for k, v in os.environ.items() if k not in ("CI", "SEED")} | {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"  # those of Headrace's own tests take most of the time
}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = heavy: needs a JVM\n")
    (tmp_path / "tests/flaky.toml").write_text("")
    (tmp_path / "tests/test_once.py").write_text(ONCE)
    return tmp_path


def told(project, *arguments, **variables):
    """Status and output of the runner."""
    done = subprocess.run(
        [sys.executable, ROOT / "tests/flaky.py", *arguments],
        cwd=project,
        env=VARIABLES | variables,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_what_passes_the_second_time_is_told_and_fails_ci_unless_it_is_listed(project):
    told(project, "forget")
    status, output = told(project, "run", "tests")
    assert status == 0
    assert output.count("FLAKY: tests/test_once.py::test_fails_once\n") == 1
    first, second = (project / "seeds.txt").read_text().split()
    assert first == second and f"SEED={first}" in output

    status, output = told(project, "verdict")
    assert (status, "Flaky tests: 1, of them not listed: 1" in output) == (0, True)
    assert told(project, "verdict", CI="true")[0] == 1

    entry = '[[flaky]]\ntest = "tests/test_once.py::test_fails_once"\nreason = "it is made so"\n'
    (project / "tests/flaky.toml").write_text(entry)
    status, output = told(project, "verdict", CI="true")
    assert (status, "(it is made so)" in output) == (0, True)

    told(project, "forget")
    assert "Flaky tests: 0" in told(project, "verdict", CI="true")[1]


def test_what_fails_twice_fails(project):
    status, output = told(project, "run", "tests", ALWAYS="1", SEED="77")
    assert status == 1
    assert "SEED=77" in output
    assert "FLAKY: tests/test_once.py::test_fails_once\n" in output
    assert "FLAKY: tests/test_once.py::test_sometimes" not in output


def test_pytest_that_dies_is_flaky_too(project):
    (project / "tests/test_once.py").write_text(
        ONCE.replace("assert not first", "if first:\n        os._exit(3)")
    )
    status, output = told(project, "run", "tests")
    assert (status, "FLAKY: tests\n" in output) == (0, True)
    assert told(project, "verdict", CI="true")[0] == 1


def test_each_entry_of_the_list_has_a_reason_and_a_test(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert flaky.mistakes(ROOT / flaky.LISTED) == []
    wrong = tmp_path / "flaky.toml"
    wrong.write_text(
        '[[flaky]]\ntest = "tests/test_flaky.py::test_no_such"\nreason = "gone"\n'
        '[[flaky]]\ntest = "tests/no_such.py::test_x"\nreason = "gone"\n'
        '[[flaky]]\ntest = "tests/test_flaky.py::test_what_fails_twice_fails"\nreason = " "\n'
    )
    assert flaky.mistakes(wrong) == [
        "tests/test_flaky.py::test_no_such does not exist",
        "tests/no_such.py::test_x does not exist",
        "tests/test_flaky.py::test_what_fails_twice_fails has no reason",
    ]
