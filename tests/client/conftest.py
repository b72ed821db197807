import pytest

from fake_server import running


@pytest.fixture(scope="module")
def server():
    with running() as (engine, url):
        yield engine, url
