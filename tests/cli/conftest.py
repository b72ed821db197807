import pytest

from fake_server import running


@pytest.fixture(scope="module")
def server():
    with running() as (engine, url):
        yield engine, url


@pytest.fixture
def engine(server):
    server[0].requests.clear()
    return server[0]


@pytest.fixture
def url(server):
    return server[1]
