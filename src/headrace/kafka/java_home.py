"""Finds the Java installation that the broker and Spark run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from headrace.model.errors import UnavailableError

OLDEST = 17
ADVICE = (
    f"install Java {OLDEST} or newer, for example 'apt install openjdk-{OLDEST}-jre-headless' "
    f"or 'brew install openjdk@{OLDEST}', and put it on PATH or set JAVA_HOME"
)


@dataclass(frozen=True)
class Java:
    """A Java that is new enough."""

    executable: Path
    version: int


def find_java() -> Java:
    """JAVA_HOME's Java, which Spark prefers too, or else the one on PATH."""
    executable = _executable()
    version = _version(executable)
    if version < OLDEST:
        raise UnavailableError(f"{executable} is Java {version}, which is too old: {ADVICE}.")
    return Java(executable, version)


def _executable() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        executable = Path(home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise UnavailableError(f"JAVA_HOME is {home}, but there is no bin/java: {ADVICE}.")
        return executable
    found = shutil.which("java")
    if found is None:
        raise UnavailableError(f"Java was not found: {ADVICE}.")
    return Path(found)


def _version(executable: Path) -> int:
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise UnavailableError(f"{executable} does not run ({failure}): {ADVICE}.") from failure
    # Java 8 and older call themselves 1.8, 1.7, …
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if match is None:
        raise UnavailableError(f"{executable} does not tell its version: {ADVICE}.")
    return int(match[1])
