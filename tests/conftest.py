"""The seed of a test run, and its one server: broker, registry, Spark, engine and REST API."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

from flaky import chosen_seed

# All random data of a run comes from one number, which the run prints: `SEED=… pytest …` makes it
# again. CI tries the same every time, so that a red run tells of the change and not of luck;
# everyone else's runs go on searching.
SEED = chosen_seed()
os.environ["SEED"] = str(SEED)  # for the processes among which xdist divides the tests

# The machines are noisy: no example fails for being slow.
settings.register_profile("headrace", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("headrace")

# The workers of the one JVM of a run import what any test ships to them.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
).rstrip(os.pathsep)

_SERVER = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)  # before Hypothesis looks
def pytest_configure(config):
    if getattr(config.option, "hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(SEED)


def pytest_collection():
    gc.disable()


def pytest_collection_finish():
    """What thousands of collected tests hold is not looked at again and again for garbage."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"SEED={SEED}")


@pytest.fixture(scope="session")
def seed():
    """What a test's own random data begins with."""
    return SEED


@pytest.fixture(scope="session")
def server(tmp_path_factory, request):
    """A running server on free ports. It lives as long as tests want it, then makes room."""
    from headrace.kafka.ports import free_port
    from headrace.server.launch import LaunchOptions, RunningServer

    options = LaunchOptions(
        data_dir=tmp_path_factory.mktemp("server"),
        port=free_port(),
        kafka_port=free_port(),
        registry_port=free_port(),
        settings={"ksql.extension.dir": str(tmp_path_factory.mktemp("ext"))},
    )
    with RunningServer(options) as running:
        request.config.stash[_SERVER] = running
        yield running


def pytest_collection_modifyitems(items):
    """Tests on the server come first: a process has one JVM, and the server's has all jars."""
    items.sort(key=lambda item: not _wants_server(item))


@pytest.hookimpl(trylast=True)  # after the fixtures that use it
def pytest_runtest_teardown(item, nextitem):
    """There is one Spark session at a time: whoever comes after the server starts their own."""
    running = item.config.stash.get(_SERVER, None)
    if running is not None and (nextitem is None or not _wants_server(nextitem)):
        running.stop()


def _wants_server(item):
    # Light tests have a fixture of that name too, with a pretended engine behind it.
    heavy = item.get_closest_marker("heavy") is not None
    return heavy and "server" in getattr(item, "fixturenames", ())
