"""The web page's files: who gets them, and what they may do."""

import re
from contextlib import contextmanager

import httpx
import pytest

from fake_engine import FakeEngine
from headrace.server.app import build_app
from headrace.server.auth import credentials_line
from headrace.server.http import HttpServer
from headrace.server.page import PAGES, files
from headrace.server.settings import Access, ServerSettings

HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@contextmanager
def serving(**settings):
    chosen = ServerSettings(port=0, **settings)
    server = HttpServer(build_app(FakeEngine(), chosen, PAGES), chosen)
    server.start()
    try:
        with httpx.Client(base_url=server.url) as client:
            yield client
    finally:
        server.stop()


@pytest.fixture(scope="module")
def http():
    with serving() as client:
        yield client


def test_browsers_get_the_page_and_others_the_info(http):
    page = http.get("/", headers=HTML)
    assert page.status_code == 200 and "<title>Headrace</title>" in page.text
    for accept in ("*/*", "application/json", "application/vnd.ksql.v1+json"):
        other = http.get("/", headers={"accept": accept})
        assert (other.status_code, other.headers["location"]) == (307, "/info")
    assert page.headers["vary"] == other.headers["vary"] == "accept"


def test_nothing_may_come_from_outside(http):
    policy = http.get("/", headers=HTML).headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for name, file in files().items():
        text = file.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//cdn|@import", text), name
        assert "style=" not in text and "onclick=" not in text, name


@pytest.mark.parametrize("name", sorted(files()))
def test_every_file_is_served_and_kept(http, name):
    served = http.get(f"/page/{name}")
    assert served.status_code == 200
    assert served.headers["x-content-type-options"] == "nosniff"
    again = http.get(f"/page/{name}", headers={"if-none-match": served.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_files_name_only_files_that_are_there():
    named = {
        name for file in files().values() for name in re.findall(rb'"/page/([^"]+)"', file.content)
    }
    assert {n.decode() for n in named} <= set(files())


@pytest.mark.parametrize("path", ["/page/none.js", "/page/../__init__.py", "/page/%2e%2e%2fx"])
def test_there_is_no_other_file(http, path):
    answer = http.get(path)
    assert answer.status_code == 404
    assert answer.json()["error_code"] == 40400


def test_the_page_asks_for_a_password_where_the_server_does(tmp_path):
    users = tmp_path / "users.txt"
    users.write_text(credentials_line("ada", "secret", ("read",)) + "\n")
    with serving(access=Access(users)) as http:
        refused = http.get("/", headers=HTML)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Basic ")
        let_in = http.get("/", headers=HTML, auth=httpx.BasicAuth("ada", "secret"))
        assert let_in.status_code == 200
