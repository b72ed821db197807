import httpx
import pytest

from fake_server import running


@pytest.fixture(scope="module")
def server():
    with running() as (engine, url):
        yield engine, url


@pytest.fixture
def engine(server):
    engine, _ = server
    engine.requests.clear()
    return engine


@pytest.fixture
def url(server):
    return server[1]


@pytest.fixture(params=["http1", "http2"])
def http(request, url):
    """A client for HTTP/1.1, and one that speaks HTTP/2 from the first byte."""
    modern = request.param == "http2"
    with httpx.Client(
        base_url=url, http1=not modern, http2=modern, timeout=10, verify=False
    ) as client:
        yield client
