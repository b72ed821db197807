import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))


@pytest.fixture(scope="module")
def server():
    from running import running

    with running() as (engine, url):
        yield engine, url


@pytest.fixture
def engine(server):
    server[0].requests.clear()
    return server[0]


@pytest.fixture
def url(server):
    return server[1]
