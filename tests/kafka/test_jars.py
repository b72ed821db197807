"""The jars are fetched once, checked on each start, and their absence is explained."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from headrace.kafka import jars
from headrace.kafka.jars import Pin, ensure_jars, pins
from headrace.model.errors import UnavailableError


def a_pin(kind: str, name: str, content: bytes) -> Pin:
    return Pin(kind, "org.example", name, "1.0", hashlib.sha256(content).hexdigest())


CONTENT = {"kafka": b"broker jar", "connector": b"spark jar"}
PINS = (a_pin("broker", "kafka", b"broker jar"), a_pin("spark", "connector", b"spark jar"))


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Two small jars and a stand-in for Ivy; lists the names it was asked for, call by call."""
    calls: list[list[str]] = []

    def run_ivy(missing: list[Pin], work: Path, lock: int, progress: jars.Progress) -> str:
        calls.append([pin.name for pin in missing])
        for pin in missing:
            file = work / "fetched" / pin.set / pin.file
            file.parent.mkdir(parents=True)
            file.write_bytes(CONTENT[pin.name])
        return "what Ivy said"

    monkeypatch.setattr(jars, "pins", lambda: PINS)
    monkeypatch.setattr(jars, "_run_ivy", run_ivy)
    monkeypatch.delenv("HEADRACE_JARS", raising=False)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    return calls


def test_every_jar_is_pinned_once() -> None:
    assert len({(pin.set, pin.file) for pin in pins()}) == len(pins())
    assert {pin.set for pin in pins()} == {"broker", "spark"}
    assert all(len(pin.sha256) == 64 for pin in pins())


def test_fetched_once(fetched: list[list[str]], tmp_path: Path) -> None:
    first, second = ensure_jars(), ensure_jars()
    assert first == second
    assert first.broker == [tmp_path / "jars" / "broker" / "kafka-1.0.jar"]
    assert first.spark == [tmp_path / "jars" / "spark" / "connector-1.0.jar"]
    assert fetched == [["kafka", "connector"]]


def test_only_what_is_damaged_is_fetched_again(fetched: list[list[str]]) -> None:
    ensure_jars().spark[0].write_bytes(b"half a jar")
    assert ensure_jars().spark[0].read_bytes() == CONTENT["connector"]
    assert fetched[1:] == [["connector"]]


def test_a_jar_with_the_wrong_content_is_not_taken(
    fetched: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONTENT, "connector", b"something else")
    with pytest.raises(UnavailableError, match=r"1 of 2 jars could not be fetched \(connector-1.0"):
        ensure_jars()
    assert (tmp_path / "jars" / "broker" / "kafka-1.0.jar").exists()
    assert not (tmp_path / "jars" / "spark" / "connector-1.0.jar").exists()
    assert (tmp_path / "jars" / "ivy.log").read_text() == "what Ivy said"


def test_a_home_that_cannot_be_written(
    fetched: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "file"))
    with pytest.raises(UnavailableError, match="set HEADRACE_HOME to a directory that can be"):
        ensure_jars()


@pytest.mark.parametrize("layout", ["flat", "by set"])
def test_jars_that_are_already_there(
    fetched: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    monkeypatch.setenv("HEADRACE_JARS", str(tmp_path / "mine"))
    with pytest.raises(UnavailableError, match=r"2 of 2 jars are not there \(kafka-1.0.jar"):
        ensure_jars()
    files = [tmp_path / "mine" / (p.set if layout == "by set" else "") / p.file for p in PINS]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = ensure_jars()
    assert [*found.broker, *found.spark] == files
    assert fetched == []


@pytest.mark.heavy
def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "pins", lambda: PINS)
    monkeypatch.delenv("HEADRACE_JARS", raising=False)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    with pytest.raises(UnavailableError, match="connect this machine to the network"):
        ensure_jars()
