"""`headrace import` and `headrace check` as a user runs them, on a server without Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_ksqldb import ANSWERS, ends_at, ksqldb
from fake_server import running
from headrace.cli.main import main
from headrace.kafka.admin import Topic
from in_memory_service import Service

SCRIPT = """DEFINE topic = 'orders';
SET 'auto.offset.reset' = 'earliest';
CREATE TYPE place AS STRUCT<city STRING>;
CREATE STREAM orders (id INT KEY, n INT, p place)
  WITH (kafka_topic='${topic}', value_format='JSON');
CREATE STREAM one (v INT) WITH (kafka_topic='one', value_format='JSON');
CREATE STREAM doubled AS SELECT v * 2 AS v FROM one EMIT CHANGES;
INSERT INTO one SELECT n AS v FROM orders PARTITION BY NULL EMIT CHANGES;
SET 'ksql.persistence.wrap.single.values' = 'false';
CREATE STREAM bare AS SELECT v FROM one EMIT CHANGES;
"""


@pytest.fixture
def service(tmp_path):
    made = Service(tmp_path, "a")
    made.topics.found["one"] = Topic("one", (1,))
    yield made
    made.close()


@pytest.fixture
def headrace(tmp_path, capsys, service):
    """Runs a command on a script, against the server: exit code, output, errors."""
    with running(service.engines[0]) as (_, url):

        def run(command, text, *arguments):
            """`text` is a script's, or the address of a ksqlDB."""
            origin = text
            if not text.startswith("http:"):
                origin = str(tmp_path / "shop.sql")
                Path(origin).write_text(text)
            target = ("--to", url) if command == "import" else ()
            code = main([command, origin, *target, *arguments])
            told = capsys.readouterr()
            return code, told.out, told.err

        yield run


def test_check_needs_no_server(headrace, service):
    code, out, _ = headrace("check", SCRIPT)
    assert code == 0
    assert out.splitlines()[-1].endswith("shop.sql: 6 as it is")
    assert service.log.commands == []


def test_check_says_what_cannot_move(headrace):
    code, out, _ = headrace("check", SCRIPT + "CREATE STREAM g AS SELECT GEO(n) FROM orders;")
    assert code == 1
    assert "Cannot move (1)" in out and "It calls GEO" in out
    assert '@udf("(n INTEGER) -> STRING")' in out


def test_check_knows_functions_of_your_own(headrace, tmp_path, monkeypatch):
    from headrace.functions import registry

    monkeypatch.setattr(registry.REGISTRY, "_functions", dict(registry.REGISTRY._functions))
    ext = tmp_path / "ext"
    ext.mkdir()
    (ext / "geo.py").write_text(
        "from headrace.functions import udf\n\n@udf\ndef geo(n: int) -> str:\n    return str(n)\n"
    )
    text = SCRIPT + "CREATE STREAM g AS SELECT id, GEO(n) AS g FROM orders;"
    assert headrace("check", text, "--extensions", str(ext))[0] == 0
    (ext / "geo.py").write_text("nonsense(")
    assert "geo.py:1" in headrace("check", text, "--extensions", str(ext))[2]


def test_statements_keep_their_settings(headrace, service):
    code, out, err = headrace("import", SCRIPT, "--start", "earliest")
    assert code == 0, out + err
    assert "Sending 6 statements" in out
    by_id = {c.id: c for c in service.log.commands}
    assert len(service.log.commands) == 6
    for command in service.log.commands:
        assert command.settings["ksql.streams.auto.offset.reset"] == "earliest"
        assert command.settings["ksql.persistence.wrap.single.keys"] == "false"
    assert by_id["stream/DOUBLED/create"].settings["ksql.persistence.wrap.single.values"] == "true"
    (catalog,) = service.settled()
    assert {s.name: s.value.wrap for s in catalog.sources()} == {
        "ORDERS": True,
        "ONE": True,
        "DOUBLED": True,
        "BARE": False,
    }


def test_twice_is_once(headrace, service):
    assert headrace("import", SCRIPT, "--start", "earliest")[0] == 0
    before = list(service.log.commands)
    code, out, _ = headrace("import", SCRIPT, "--start", "earliest")
    assert code == 0 and "Nothing to send: the server has it all." in out
    assert "Is there already (6)" in out
    assert service.log.commands == before


def test_what_was_begun_is_finished(headrace, service):
    first = SCRIPT[: SCRIPT.index("INSERT")]
    assert headrace("import", first, "--start", "earliest")[0] == 0
    code, out, _ = headrace("import", SCRIPT, "--start", "earliest")
    assert code == 0 and "Sending 2 statements" in out
    assert len(service.log.commands) == 6


def test_in_pieces(headrace, service):
    """What was imported before can be read; how its single values lie is said, not assumed."""
    bare = "CREATE STREAM b (v INT) WITH (kafka_topic='one', value_format='JSON', {}=false);"
    for name in ("wrap_single_value", "wrap_single_values"):
        text = bare.format(name).replace("STREAM b", f"STREAM {name[-5:]}")
        assert headrace("import", text, "--start", "earliest")[0] == 0
    for source in ("value", "alues"):
        text = f"CREATE STREAM of_{source} AS SELECT v FROM {source} EMIT CHANGES;"
        code, out, err = headrace("import", text, "--start", "earliest")
        assert code == 0, out + err
    (catalog,) = service.settled()
    assert [catalog.source(f"OF_{s}").value.wrap for s in ("VALUE", "ALUES")] == [True, True]


def test_what_was_imported_with_its_types_can_be_read(headrace, service):
    assert headrace("import", SCRIPT, "--start", "earliest")[0] == 0
    text = "CREATE STREAM cities AS SELECT id, p->city AS city FROM orders EMIT CHANGES;"
    code, out, err = headrace("import", text, "--start", "earliest")
    assert code == 0 and "Sending 1 statements" in out, out + err


def test_nothing_is_sent_if_something_cannot_move(headrace, service):
    text = SCRIPT + "CREATE STREAM g AS SELECT GEO(n) FROM orders;"
    code, _, err = headrace("import", text, "--start", "earliest")
    assert code == 1 and "Nothing was sent: 1 cannot move (above)" in err
    assert service.log.commands == []
    code, out, _ = headrace("import", text, "--start", "earliest", "--leave-out")
    assert code == 0 and "Sending 6 statements" in out


def test_what_the_server_refuses_leaves_nothing_behind(headrace, service):
    """The last statement reads a topic that is not there, which the client cannot know."""
    gone = "CREATE STREAM gone (a INT) WITH (kafka_topic='gone', value_format='JSON');"
    code, _, err = headrace("import", SCRIPT + gone, "--start", "earliest")
    assert code == 1
    assert "Topic 'gone' does not exist" in err and "Nothing was done." in err
    assert service.log.commands == []


def test_another_stream_of_that_name(headrace, service):
    other = "CREATE STREAM one (w INT) WITH (kafka_topic='one', value_format='JSON');"
    assert headrace("import", other, "--start", "earliest")[0] == 0
    code, out, _ = headrace("import", SCRIPT, "--start", "earliest")
    assert code == 1 and "The server has another ONE: CREATE STREAM ONE (W INTEGER)" in out
    assert len(service.log.commands) == 1


def test_a_running_ksqldb(headrace, service):
    with ksqldb(ANSWERS.__getitem__) as client:
        code, _, err = headrace("import", client.url, "--leave-out")
        assert code == 1 and "Say --kafka HOST:PORT, or by --start where they begin" in err
        code, out, err = headrace("import", client.url, "--leave-out", "--start", "earliest")
        assert code == 0, out + err
        assert "Sending 5 statements" in out
        code, out, _ = headrace("import", client.url, "--leave-out", "--start", "earliest")
        assert code == 0 and "the server has it all" in out
    (catalog,) = service.settled()
    assert sorted(s.name for s in catalog.sources()) == ["OLD", "ORDERS", "SUMS"]
    assert len(catalog.queries) == 2
    paused = [c.statement for c in service.log.commands if c.id.startswith("pause/")]
    assert [text.rpartition("_")[0] for text in paused] == ["PAUSE CTAS_SUMS"]


def test_a_ksqldb_that_ends_in_the_middle_leaves_nothing_behind(headrace, service):
    with ksqldb(ends_at("SHOW QUERIES EXTENDED;")) as client:
        code, _, err = headrace("import", client.url, "--leave-out", "--start", "earliest")
    assert code == 1 and "could not be read to the end, so that nothing was imported" in err
    assert service.log.commands == []


def test_a_dry_run_sends_nothing(headrace, service):
    code, out, _ = headrace("import", SCRIPT, "--dry-run", "--show-statements", "--suffix", "_HR")
    assert code == 0 and "| CREATE STREAM DOUBLED WITH (KAFKA_TOPIC='DOUBLED_HR')" in out
    assert service.log.commands == []


def test_a_dry_run_needs_no_server(tmp_path, capsys):
    script = tmp_path / "shop.sql"
    script.write_text(SCRIPT)
    assert main(["import", str(script), "--dry-run", "--to", "http://127.0.0.1:1"]) == 0
    assert "What it has already is not considered here" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Say what to import"),
        (("--command-topic",), "Say where the command topic is"),
        (("http://a", "http://b"), "one ksqlDB at a time"),
        (("none.sql",), "Cannot read none.sql"),
        (("x.sql", "--extensions", "nowhere"), "nowhere is not a directory"),
    ],
)
def test_what_is_missing(arguments, told, capsys):
    assert main(["import", *arguments]) == 1
    assert told in capsys.readouterr().err


def test_a_server_that_is_not_there(tmp_path, capsys):
    script = tmp_path / "shop.sql"
    script.write_text(SCRIPT)
    assert main(["import", str(script), "--to", "http://127.0.0.1:1"]) == 1
    assert "Cannot reach the server" in capsys.readouterr().err
