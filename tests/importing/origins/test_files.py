"""Statements from files: scripts with variables and settings, and backups of a command topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.importing.assessment import Verdict, assess
from headrace.importing.origins.files import read_files
from headrace.importing.recorded import History, Recorded, Unreadable
from headrace.model.errors import HeadraceError
from ksqldb_shop import shop


def read(path: Path, *texts: str, **variables: str) -> History:
    files = []
    for i, text in enumerate(texts):
        files.append(path / f"{i}.sql")
        files[-1].write_text(text)
    return read_files(files, "default_", variables)


def test_variables_and_settings_hold_on(tmp_path: Path) -> None:
    history = read(
        tmp_path,
        "DEFINE name = 'orders';\nSET 'auto.offset.reset' = 'earliest';\n"
        "CREATE STREAM ${name} (a INT) WITH (kafka_topic='${name}_topic', value_format='${fmt}');\n"
        "UNSET 'auto.offset.reset';",
        "CREATE STREAM copy AS\n  SELECT * FROM ${name};",
        fmt="JSON",
    )
    first, second = history.entries
    assert first == Recorded(
        "CREATE STREAM orders (a INT) WITH (kafka_topic='orders_topic', value_format='JSON');",
        "0.sql:3",
        session={"auto.offset.reset": "earliest"},
    )
    assert second == Recorded("CREATE STREAM copy AS\n  SELECT * FROM orders;", "1.sql:1")
    assert [i.verdict for i in assess(history).items] == [Verdict.AS_IS, Verdict.AS_IS]


def test_what_cannot_be_read_is_told_with_its_line(tmp_path: Path) -> None:
    broken, undefined, fine = read(
        tmp_path,
        "CREATE STREM s;\nCREATE STREAM ${nobody} AS SELECT * FROM x;\nDROP STREAM x;",
    ).entries
    assert isinstance(broken, Unreadable) and broken.place == "0.sql:1"
    assert isinstance(undefined, Unreadable) and "nobody" in undefined.reason
    assert isinstance(fine, Recorded)


def test_a_backup_of_a_command_topic(tmp_path: Path) -> None:
    history = read(tmp_path, shop().backup())
    assert history.has_run and len(history.entries) == len(shop().commands)
    assert not assess(history).of(Verdict.CANNOT)


def test_a_torn_backup(tmp_path: Path) -> None:
    lines = shop().backup().splitlines()
    history = read(tmp_path, "\n".join([*lines[:3], lines[3][:40]]))
    assert [type(e) for e in history.entries] == [Recorded] * 3 + [Unreadable]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match="No such file"):
        read_files([tmp_path / "none.sql"], "default_")
    (tmp_path / "latin.sql").write_bytes("-- für".encode("latin-1"))
    with pytest.raises(HeadraceError, match="not UTF-8"):
        read_files([tmp_path / "latin.sql"], "default_")
