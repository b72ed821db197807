"""The client alone: what `pip install headrace` brings, and what it takes to be there.

This builds the wheel and installs it, so it needs a package index or pip's cache; that is why it
is among the heavy tests, though no JVM is started.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from headrace.cli.commands import COMMANDS
from headrace.cli.main import main

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MOST_MEGABYTES = 25
MOST_SECONDS = 1.0
# Of a new venv, what pip itself is.
_PIP = ("pip", "setuptools")


def names(requirements):
    return {line.partition("==")[0].partition("[")[0] for line in requirements}


def test_the_client_requires_nothing_of_the_server():
    light, server = PROJECT["dependencies"], PROJECT["optional-dependencies"]["server"]
    assert names(light) == {"httpx", "prompt-toolkit", "rich", "javaproperties"}
    assert "pyspark" in names(server)
    assert not names(light) & names(server)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_a_command_that_needs_the_server_says_how_to_install_it(command, monkeypatch, capsys):
    """All of them, whatever they import: here every one finds PySpark missing."""

    def missing(name):
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql")

    monkeypatch.setattr("headrace.cli.commands.import_module", missing)
    assert main([command.name]) == 1
    told = capsys.readouterr().err
    assert told.startswith(
        f"headrace {command.name} needs the server, and pyspark is not installed"
    )
    assert told.endswith("pip install 'headrace[server]'\n")


def test_a_module_of_our_own_that_is_missing_is_a_bug(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'headrace.x'", name="headrace.x")

    monkeypatch.setattr("headrace.cli.commands.import_module", missing)
    with pytest.raises(ModuleNotFoundError):
        main(["start"])


@pytest.mark.parametrize("module", ["headrace.client", "headrace.cli.shell", "headrace.cli.main"])
def test_the_shell_imports_nothing_of_the_server(module):
    code = f"import sys, {module}\nprint(*sorted({{n.partition('.')[0] for n in sys.modules}}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    server = {"pyspark", "pyarrow", "pandas", "numpy", "confluent_kafka", "starlette", "granian"}
    assert not server & set(ran.stdout.split())
    assert importlib.import_module(module)


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """A Python with the client alone, from the wheel."""
    place = tmp_path_factory.mktemp("light")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", f"--wheel-dir={place}", str(ROOT))
    (wheel,) = place.glob("headrace-*.whl")
    run(sys.executable, "-m", "venv", str(place / "venv"))
    python = place / "venv" / "bin" / "python"
    constraints = f"--constraint={ROOT / 'constraints.txt'}"
    run(python, "-m", "pip", "install", "--quiet", constraints, str(wheel))
    return python


def run(*command):
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    ran = subprocess.run(
        list(map(str, command)), env=kept, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.heavy
def test_the_client_alone(light, url, capsys):
    site = next((light.parent.parent / "lib").glob("python*/site-packages"))
    assert not (site / "pyspark").exists()
    headrace = light.parent / "headrace"
    assert " S           | s " in run(headrace, url, "-e", "SHOW STREAMS;")
    rows = run(headrace, url, "-e", "SELECT * FROM S EMIT CHANGES LIMIT 2;")
    assert "|a|1|1.50|0.5|" in rows
    assert "usage: headrace start" in run(headrace, "start", "--help")

    refused = subprocess.run([headrace, "start"], capture_output=True, text=True, cwd=site)
    assert refused.returncode == 1
    assert refused.stderr.endswith("pip install 'headrace[server]'\n")
    assert "Traceback" not in refused.stderr

    megabytes = sum(size(part) for part in site.iterdir() if not part.name.startswith(_PIP)) / 1e6
    timed = "import time; t = time.perf_counter(); import headrace.client; "
    timed += "print(time.perf_counter() - t)"
    seconds = min(float(run(light, "-c", timed)) for _ in range(3))
    with capsys.disabled():
        print(f"\nThe light client: {megabytes:.1f} MB installed, imported in {seconds:.2f} s")
    assert megabytes < MOST_MEGABYTES
    assert seconds < MOST_SECONDS


def size(path):
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(p.stat().st_size for p in files if p.is_file() and "__pycache__" not in p.parts)
