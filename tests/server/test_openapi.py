"""The API's description: it is whole, it is what docs/rest-api.md says, and it breaks nothing."""

import re
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api_requests import api_requests
from headrace.server.app import OPENAPI_PATH, WEBSOCKET_PATH
from headrace.server.endpoints import ENDPOINTS

PAGE = Path(__file__).parents[2] / "docs" / "rest-api.md"


@pytest.fixture
def document(url):
    return httpx.get(url + OPENAPI_PATH).json()


def test_every_endpoint_is_described(document):
    described = {
        (path, method.upper()) for path, methods in document["paths"].items() for method in methods
    }
    assert described == {(e.path, e.method) for e in ENDPOINTS}
    body = document["paths"]["/query-stream"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["required"] == ["sql"]
    (parameter,) = document["paths"]["/is_valid_property/{property}"]["get"]["parameters"]
    assert (parameter["name"], parameter["in"]) == ("property", "path")


def test_the_page_lists_every_endpoint():
    listed = re.findall(r"^\| `(GET|POST) (\S+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    declared = {(e.method, e.path, e.doc) for e in ENDPOINTS}
    extra = [("GET", OPENAPI_PATH), ("GET", WEBSOCKET_PATH)]
    assert {(m, p, d) for m, p, d in listed if (m, p) not in extra} == declared
    assert [(m, p) for m, p, _ in listed if (m, p) in extra] == extra


@pytest.fixture(scope="module")
def client():
    """One for all requests: each client reads all of the world's certificates when it is made."""
    with httpx.Client() as client:
        yield client


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_described_request_breaks_the_server(client, url, document, data):
    request = data.draw(api_requests(document))
    with client.stream(
        request.method, url + request.path, content=request.content, headers=request.headers
    ) as answer:
        assert answer.status_code < 500, answer.read()
        if answer.status_code >= 400:
            answer.read()
            assert answer.json()["error_code"] // 100 == answer.status_code
