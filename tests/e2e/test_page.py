"""The web page in a real browser: what a person does there from the first visit on."""

from __future__ import annotations

import time

import pytest
from browser import Page, start_browser

from scene import record

pytestmark = pytest.mark.heavy

CREATE = """SET 'ksql.logging.processing.rows.include' = 'true'; -- the log holds what failed

CREATE STREAM clicks (visitor STRING KEY, page STRING, ms INT, agent BYTES HEADER('agent'))
  WITH (kafka_topic = 'clicks', value_format = 'JSON', partitions = 1);

CREATE STREAM slow AS
  SELECT visitor, page, ms, FROM_BYTES(agent, 'utf8') AS agent
  FROM clicks WHERE ms > 100 EMIT CHANGES;

CREATE TABLE per_page AS
  SELECT page, COUNT(*) AS visits, MAX(ms) AS slowest FROM clicks GROUP BY page EMIT CHANGES;
"""

SELECT = """-- Clicks that took long, as they come.
SELECT visitor, page, ms, agent,
    TIMESTAMPTOSTRING(ROWTIME, 'HH:mm:ss', 'UTC') AS clicked
  FROM slow
  EMIT CHANGES;
"""


@pytest.fixture
def browser():
    started = start_browser()
    yield started
    started.quit()


def click(number):
    headers = (("agent", b"firefox" if number % 2 else b"chromium"),)
    pages = ("/", "/shop", "/cart")
    value = {"page": pages[number % 3], "ms": 40 * (number % 7)}
    return record(value, f"visitor-{number % 5}", headers, 1_767_268_800_000 + 1000 * number)


def test_a_person_creates_a_stream_sees_rows_the_graph_and_a_failed_record(browser, scene):
    page = Page(browser, scene.url)
    assert page.first_paint() < 1000

    page.run(CREATE)
    page.wait(lambda: page.text("#results .answer").count("Created query with ID") == 2)
    assert "Stream created" in page.text("#results .answer")
    page.wait(lambda: {"CLICKS", "SLOW", "PER_PAGE"} <= set(page.texts("#sources .name")))
    columns = page.texts("#sources details[data-name=CLICKS] dt")
    assert columns == ["VISITORKEY", "PAGE", "MS", "AGENTHEADER('agent')"]

    page.run(SELECT)
    page.wait(lambda: "AGENT" in page.text("#results th"))
    scene.write("clicks", *map(click, range(30)))
    page.wait(lambda: len(page.rows()) >= 12)
    assert {row[3] for row in page.rows()} == {"firefox", "chromium"}

    nodes = page.texts("#graph g.node text:not(.small)")
    assert {"CLICKS", "SLOW", "PER_PAGE"} <= set(nodes)
    assert len(page.all("#graph path.edge")) >= 4
    page.wait(lambda: page.text("#queries td:last-child").split()[:2] == ["0", "0"])
    assert page.text("#queries .state").split()[:2] == ["running", "running"]

    scene.write("clicks", record(b'{"page": "/broken", "ms": '))
    entry = "#log tbody tr"
    page.wait(lambda: "Failed to deserialize" in page.text(entry))
    scene.write("clicks", *map(click, range(30, 60)))
    page.wait(lambda: len(page.rows()) >= 24)
    page.picture("page-light")
    page.click(entry)
    assert 'record: {"page": "/broken", "ms":' in page.text("#log .detail")
    (field,) = page.all("#filter")
    field.send_keys("nothing like it")
    page.wait(lambda: "No entry matches." in page.text("#log"))
    field.clear()
    field.send_keys("broken")  # also in what the record held
    page.wait(lambda: "/broken" in page.text("#log .detail"))
    page.picture("page-dark", dark=True)

    page.click("#stop")
    page.wait(lambda: page.text("#results .note") == "stopped")
    page.run("DESCRIBE clicks; SELECT nothing FROM clicks EMIT CHANGES;")
    page.wait(lambda: "column 'NOTHING' cannot be resolved" in page.text("#results .bad"))
    assert "header agent" in page.text("#results")

    outside = [u for u in page.requests() if not u.startswith((scene.url + "/", "data:"))]
    assert outside == []
    problems = [p for p in page.problems() if "400 (Bad Request)" not in p]
    assert problems == []


def test_words_are_completed(browser, scene):
    scene.sql(
        "CREATE STREAM IF NOT EXISTS visits (id INT KEY, visitor STRING, stay INT)"
        " WITH (kafka_topic='visits', value_format='JSON', partitions=1);"
    )
    page = Page(browser, scene.url)
    page.wait(lambda: "VISITS" in page.texts("#sources .name"))
    (field,) = page.all("#text")

    def offered():
        field.send_keys("\ue009 \ue000")  # Ctrl-Space
        return not page.all("#choices")[0].get_attribute("hidden")

    def completed(typed):
        page.type(typed)
        page.wait(offered)
        choices = page.texts("#choices li")
        field.send_keys("\ue004")  # Tab
        return choices[0], field.get_attribute("value")

    assert completed("SELECT * FROM visi") == ("VISITSstream", "SELECT * FROM VISITS")
    assert completed("SELECT * FROM visits v WHERE v.visi")[1].endswith("v.VISITOR")
    assert completed("SELECT FROM_BYT")[1] == "SELECT FROM_BYTES("
    assert completed("crea")[1] == "CREATE"


def test_a_password_is_enough_for_everything_on_the_page(browser, tmp_path):
    from fake_engine import FakeEngine
    from headrace.server.app import build_app
    from headrace.server.auth import credentials_line
    from headrace.server.http import HttpServer
    from headrace.server.page import PAGES
    from headrace.server.settings import Access, ServerSettings

    users = tmp_path / "users.txt"
    users.write_text(credentials_line("ada", "secret", ("read",)) + "\n")
    settings = ServerSettings(port=0, access=Access(users))
    engine = FakeEngine()
    http = HttpServer(build_app(engine, settings, PAGES), settings)
    http.start()
    try:
        browser.get(http.url.replace("://", "://ada:secret@") + "/")
        deadline = time.monotonic() + 20
        while not engine.requests and time.monotonic() < deadline:
            time.sleep(0.1)
        assert engine.requests[0].text.startswith("SHOW STREAMS EXTENDED;")
        refused = [e for e in browser.get_log("browser") if "401" in e["message"]]
        assert refused == []
    finally:
        http.stop()
