"""Migrations without a server: projects, files, and what is told of mistakes."""

import pytest

from headrace.cli.main import main
from headrace.cli.migrations.command import COMMANDS


@pytest.fixture
def project(tmp_path, capsys):
    path = tmp_path / "shop"
    assert main(["migrations", "new-project", str(path), "http://127.0.0.1:1"]) == 0
    capsys.readouterr()
    return path


def migrate(project, *arguments):
    config = ["-c", str(project / "ksql-migrations.properties")]
    return main(["migrations", *config, *arguments])


def test_a_new_project(tmp_path, capsys):
    path = tmp_path / "a" / "shop"
    assert main(["migrations", "new-project", str(path), "http://localhost:8088"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[:5] == [
        f"Creating new migrations project at {path}",
        f"Creating directory: {path}",
        f"Creating directory: {path}/migrations",
        f"Creating file: {path}/ksql-migrations.properties",
        "Writing to config file: ksql.server.url=http://localhost:8088",
    ]
    assert told[-2] == "Migrations project directory created successfully"
    assert told[-1].startswith("Execution time: ")
    config = (path / "ksql-migrations.properties").read_text()
    assert "# ksql.migrations.stream.name=MIGRATION_EVENTS\n" in config
    assert main(["migrations", "new-project", str(path), "http://localhost:8088"]) == 1
    assert "File already exists" in capsys.readouterr().err


def test_files_are_numbered_and_named_after_what_they_do(project, capsys):
    assert migrate(project, "create", "Add users: all") == 0
    assert migrate(project, "create", "-v", "10", "ten") == 0
    assert migrate(project, "create", "next") == 0
    names = sorted(p.name for p in (project / "migrations").iterdir())
    assert names == ["V000001__Add_users__all.sql", "V000010__ten.sql", "V000011__next.sql"]
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"Creating migration file: {project}/migrations/{names[0]}"
    assert told[1] == "Migration file successfully created"
    assert migrate(project, "create", "-v", "10", "again") == 1
    assert "Found existing migrations file for version 10" in capsys.readouterr().err


def test_the_configuration_may_stand_after_the_command(project):
    config = str(project / "ksql-migrations.properties")
    assert main(["migrations", "create", "one", "-c", config]) == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["create", "x"], "Migrations config file required but not specified."),
        (["-c", "none.properties", "info"], "Failed to read file: none.properties"),
        (["-c", "x", "new-project", "a", "b"], "does not expect a config file"),
    ],
)
def test_a_missing_configuration_is_told(arguments, part, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["migrations", *arguments]) == 1
    assert part in capsys.readouterr().err


def test_a_server_that_is_not_there_is_told(project, capsys):
    assert migrate(project, "initialize-metadata") == 1
    assert "Failed to query http://127.0.0.1:1/info" in capsys.readouterr().err
    assert migrate(project, "apply", "--all") == 1
    assert "Did you run `headrace migrations initialize-metadata`?" in capsys.readouterr().err


def test_help_of_every_command_fits_a_screen_and_has_an_example(capsys):
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            main(["migrations", command.name, "--help"])
        text = capsys.readouterr().out
        assert len(text.splitlines()) <= 24
        assert f"example:\n  headrace migrations {command.example}" in text
