"""Java is found, or its absence is explained in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.kafka.java_home import find_java
from headrace.model.errors import UnavailableError


def a_java(home: Path, banner: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
    ],
)
def test_java_home_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, banner: str, version: int
) -> None:
    executable = a_java(tmp_path, banner)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java = find_java()
    assert (java.executable, java.version) == (executable, version)


def test_java_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = a_java(tmp_path, 'openjdk version "18.0.2"')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{executable.parent}:/usr/bin:/bin")
    assert find_java().executable == executable


def test_an_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_java(tmp_path, 'java version "1.8.0_392"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"is Java 8, which is too old: install Java 17"):
        find_java()


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"^Java was not found: install Java 17 or newer"):
        find_java()


def test_a_java_home_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UnavailableError, match="but there is no bin/java"):
        find_java()


def test_a_java_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_java(tmp_path, "Unable to locate a Java Runtime")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UnavailableError, match="does not tell its version"):
        find_java()
