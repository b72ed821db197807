"""Runs heavy tests. What fails runs once more with the same seed, and is FLAKY if it then passes.

    python tests/flaky.py forget              a new run of everything begins
    python tests/flaky.py run PYTEST-ARGS…    one part of it
    python tests/flaky.py verdict             what was flaky; in CI it fails unless it is listed

`tests/flaky.toml` lists the tests that may be, each with a reason.
"""

from __future__ import annotations

import ast
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

LISTED = Path("tests/flaky.toml")
RECORD = Path(".pytest_cache/flaky.txt")


def chosen_seed() -> int:
    """Where all random data of a run begins: what SEED says, in CI always the same."""
    return int(os.environ.get("SEED") or (1 if os.environ.get("CI") else secrets.randbelow(10**9)))


def run(arguments: Sequence[str]) -> int:
    """One part in a process of its own, and what failed there in a second one."""
    began = time.monotonic()
    status = _run_twice(arguments)
    print(f"{' '.join(arguments)} took {time.monotonic() - began:.0f} s", flush=True)
    return status


def _run_twice(arguments: Sequence[str]) -> int:
    seed = str(chosen_seed())
    print(f"Tests on real Kafka and Spark, SEED={seed}: {' '.join(arguments)}", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        status = _pytest(arguments, seed, cache)
        if status == 0:
            return 0
        failed = _failed(cache) or {" ".join(arguments)}  # all of it, where pytest itself died
        print(f"These run once more with SEED={seed}: a busy machine may have been to blame")
        status = _pytest(["--last-failed", *arguments], seed, cache)
        flaky = sorted(failed - _failed(cache)) if status in (0, 1) else []
    if flaky:
        RECORD.parent.mkdir(exist_ok=True)
        with RECORD.open("a") as record:
            for test in flaky:
                print(f"FLAKY: {test}", flush=True)
                record.write(f"{test}\n")
    return status


def verdict(*, strict: bool) -> int:
    """Tells how many tests were flaky; with `strict` each must be listed."""
    found = sorted(set(RECORD.read_text().splitlines())) if RECORD.exists() else []
    listed = listing(LISTED)
    unlisted = [test for test in found if test.partition("[")[0] not in listed]
    for test in found:
        reason = listed.get(test.partition("[")[0], f"not listed in {LISTED}")
        print(f"FLAKY: {test} ({reason})")
    print(f"Flaky tests: {len(found)}, of them not listed: {len(unlisted)}")
    return 1 if strict and unlisted else 0


def listing(file: Path) -> dict[str, str]:
    """The reasons, by the id of a test without its parameters."""
    return {str(entry["test"]): str(entry["reason"]) for entry in _entries(file)}


def mistakes(file: Path) -> list[str]:
    """What is wrong with the list: entries without a reason, or of tests that are not there."""
    found = []
    for entry in _entries(file):
        path, _, name = str(entry.get("test", "")).partition("::")
        if not str(entry.get("reason", "")).strip():
            found.append(f"{path}::{name} has no reason")
        if not Path(path).is_file() or name not in _tests(Path(path)):
            found.append(f"{path}::{name} does not exist")
    return found


def _entries(file: Path) -> list[dict[str, object]]:
    return list(tomllib.loads(file.read_text()).get("flaky", []))


def _tests(file: Path) -> set[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = ast.parse(file.read_text()).body
    return {node.name for node in found if isinstance(node, functions)}


def _pytest(arguments: Sequence[str], seed: str, cache: str) -> int:
    """Prints a line for each test, and only whole lines: another part may run beside this one."""
    command = [sys.executable, "-m", "pytest", "-v", "-m", "heavy"]
    command += ["-o", f"cache_dir={cache}", "--durations=10"]
    with subprocess.Popen(
        [*command, *arguments], env={**os.environ, "SEED": seed}, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
    return running.returncode


def _failed(cache: str) -> set[str]:
    file = Path(cache, "v", "cache", "lastfailed")
    return set(json.loads(file.read_text())) if file.exists() else set()


def main(command: str, *arguments: str) -> int:
    if command == "forget":
        RECORD.unlink(missing_ok=True)
        return 0
    if command == "run":
        return run(arguments)
    return verdict(strict=bool(os.environ.get("CI")))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
