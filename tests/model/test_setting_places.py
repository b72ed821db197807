"""A setting is declared in one place, and read in one."""

from __future__ import annotations

import pytest

from headrace.cli.reference import PAGES
from headrace.engine.statements.request_session import Session
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.setting import Fate, Setting, positive
from headrace.model.settings import SETTINGS, Settings
from headrace.sql.parser import parse_statement
from naming import modules_that_write
from partial_engine import ask

# Names of headers are declared with those who check them.
HOMES = {"model/settings.py", "model/ksqldb_settings.py", "model/allowed_callers.py"}
# Kafka's own name, of its clients' properties as well.
OTHERS = {"bootstrap.servers", "compression.type"}
# Its name is a constant that those who read it import.
DECLARED_ELSEWHERE = {
    "ksql.server.allowed.hosts",
    "ksql.properties.overrides.denylist",
    "ksql.properties.overrides.allowlist",
    "ksql.properties.overrides.validation.mode",
}
# Read with all that begin as they do, by what follows.
READ_BY_PREFIX = {
    "ksql.schema.registry.basic.auth.user.info",
    "ksql.connect.basic.auth.credentials.source",
    "ksql.connect.basic.auth.credentials.file",
}
# Those that two modules read, as they hold for two things.
READ_TWICE = {
    "listeners",  # of the server and of the embedded broker
    "ksql.schema.registry.url",  # by servers, and by commands that read or write records
    "ksql.advertised.listener",
    "processing.guarantee",
    "ksql.persistence.wrap.single.values",  # a command keeps them as they were
    "ksql.persistence.wrap.single.keys",
    "ksql.query.pull.max.staleness.ms",
    "ksql.max.push.queries",
    "ksql.queries.file",
    "ksql.server.max.prints",
    "ksql.server.max.insert.streams",
    "ksql.server.max.waiting.assertions",
}


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - OTHERS))
def test_a_setting_is_named_where_it_is_declared_and_where_it_is_read(name: str) -> None:
    named = modules_that_write()[name]
    assert named & HOMES
    assert len(_readers(name)) <= (2 if name in READ_TWICE else 1)


def test_those_that_are_read_twice_are() -> None:
    found = {name for name in READ_TWICE if len(_readers(name)) == 2}
    assert found == READ_TWICE


def test_those_that_nobody_reads_say_so() -> None:
    unread = {
        name
        for name, setting in SETTINGS.items()
        if setting.fate is Fate.HONOURED
        if not _readers(name) and not _readers(name.removeprefix("ksql.streams."))
    }
    silent = {n for n in unread if not SETTINGS[n].doc.startswith("Accepted for compatibility")}
    assert silent == DECLARED_ELSEWHERE | READ_BY_PREFIX


def _readers(name: str) -> set[str]:
    return modules_that_write()[name] - HOMES


NEW = Setting("ksql.sessions.most", positive, 20, "How many sessions.", editable=True, limit=True)


def test_a_new_setting_needs_nothing_but_its_declaration(monkeypatch) -> None:
    monkeypatch.setitem(SETTINGS, NEW.name, NEW)
    shown = ask("SHOW PROPERTIES;", settings={NEW.name: "12"}, properties={NEW.name: 7})
    (row,) = (p for p in shown["properties"] if p["name"] == NEW.name)
    assert (row["value"], row["editable"], row["level"]) == ("7", True, "QUERY")
    assert NEW.name in shown["overwrittenProperties"]
    assert NEW.name in ask("SHOW PROPERTIES;")["defaultProperties"]

    limited = "How many sessions. A client may lower it, and not raise it."
    assert f"| `{NEW.name}` | `20` | {limited} |" in PAGES["settings"]()

    session, server = Session(), Settings({NEW.name: "12"})
    assert session.takes(parse_statement(f"SET '{NEW.name}' = '7';"))
    assert session.settings(server).number(NEW.name) == 7
    with pytest.raises(StatementError, match="Value must be at least 1"):
        session.takes(parse_statement(f"SET '{NEW.name}' = '0';"))
    session.takes(parse_statement(f"SET '{NEW.name}' = '13';"))
    with pytest.raises(StatementError, match="this server's limit is 12"):
        session.settings(server)


def test_without_its_declaration_nobody_knows_it() -> None:
    assert NEW.name not in PAGES["settings"]()
    with pytest.raises(HeadraceError, match="Not recognizable as ksql"):
        Settings({NEW.name: "12"})
