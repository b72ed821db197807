"""Migrations against a real server: applied, failed in the middle, mended, applied again."""

from __future__ import annotations

import re
import threading

import pytest

from headrace.cli.main import main

pytestmark = pytest.mark.heavy


class Project:
    """A migrations project with names of its own on the shared server."""

    def __init__(self, path, url, prefix, capsys):
        self.path, self.prefix, self.capsys = path, prefix, capsys
        assert main(["migrations", "new-project", str(path), url]) == 0
        config = path / "ksql-migrations.properties"
        with config.open("a") as file:
            file.write(f"ksql.migrations.stream.name={prefix}_EVENTS\n")
            file.write(f"ksql.migrations.table.name={prefix}_VERSIONS\n")
        capsys.readouterr()

    def __call__(self, *arguments):
        """Runs a command: exit code, standard output, standard error."""
        config = str(self.path / "ksql-migrations.properties")
        code = main(["migrations", "--config-file", config, *arguments])
        told = self.capsys.readouterr()
        return code, told.out, told.err

    def file(self, version, name, text):
        path = self.path / "migrations" / f"V{version:06d}__{name}.sql"
        path.write_text(text)
        return path

    def states(self):
        """The rows of `info`, without the times."""
        code, out, _ = self("info")
        assert code == 0
        rows = [[cell.strip() for cell in line.split(" | ")] for line in out.splitlines()[4:-2]]
        return [(r[0], r[1], r[2], r[3], r[6]) for r in rows]


@pytest.fixture
def project(tmp_path, scene, capsys, request):
    prefix = re.sub(r"\W", "_", request.node.name).upper()[5:25]
    made = Project(tmp_path / "shop", scene.url, prefix, capsys)
    code, out, err = made("initialize-metadata")
    assert code == 0, err
    assert out.splitlines()[:4] == [
        "Initializing migrations metadata",
        f"Creating stream: {prefix}_EVENTS",
        f"Creating table: {prefix}_VERSIONS",
        "Migrations metadata initialized successfully",
    ]
    yield made
    code, out, err = made("destroy-metadata")
    assert code == 0, err
    assert "Migrations metadata cleaned successfully" in out


def test_the_life_of_a_project(project, scene):
    p = project.prefix
    first = project.file(
        1,
        "Orders_with_headers",
        f"""-- A header as a column; a semicolon; and a quote: '
        CREATE STREAM {p}_orders (id INT KEY, item STRING, trace BYTES HEADER('trace-id'))
          WITH (kafka_topic='{p}_orders', value_format='JSON', partitions=${{partitions}});
        INSERT INTO {p}_orders (id, item) VALUES (1, 'a;b');
        """,
    )
    project.file(
        2,
        "Items",
        f"""SET 'auto.offset.reset' = 'earliest';
        DEFINE target = '{p}_items';
        CREATE STREAM ${{target}} AS
          SELECT id, item, ROWTIME AS placed FROM {p}_orders EMIT CHANGES;
        """,
    )
    assert project.states() == [
        ("1", "Orders with headers", "PENDING", "N/A", "N/A"),
        ("2", "Items", "PENDING", "N/A", "N/A"),
    ]

    code, out, _ = project("apply", "--all", "--dry-run", "-d", "partitions=1")
    assert code == 0
    assert "This is a dry run." in out and "2 migration file(s) loaded." in out
    assert out.count("Dry run complete. No migrations were actually applied.") == 2
    assert not [s for s in scene.client.streams() if s["name"] == f"{p}_ORDERS"]

    code, out, err = project("apply", "--next", "--define", "partitions=1")
    assert code == 0, err
    assert out.splitlines()[:5] == [
        "Validating current migration state before applying new migrations",
        "Loading migration files",
        "1 migration file(s) loaded.",
        "Applying migration version 1: Orders with headers",
        f"{first} contents:",
    ]
    assert "Successfully migrated" in out
    code, out, err = project("apply", "--until", "2")
    assert code == 0, err
    assert project.states() == [
        ("1", "Orders with headers", "MIGRATED", "<none>", "N/A"),
        ("2", "Items", "MIGRATED", "1", "N/A"),
    ]
    assert scene.values(f"{p}_ITEMS", 1)[0]["ITEM"] == "a;b"
    fields = scene.client.describe(f"{p}_orders")["fields"]
    assert fields[2]["type"] == "HEADER" and fields[2]["headerKey"] == "trace-id"

    code, out, _ = project("apply", "--all")
    assert code == 0 and "No eligible migrations found." in out
    code, _, err = project("apply", "--version", "1")
    assert code == 1 and "Last version migrated was 2" in err
    code, _, err = project("apply", "--version", "7")
    assert code == 1 and "No migration file with version 7 exists." in err

    assert project("validate")[0] == 0
    text = first.read_text()
    first.write_text(text + "-- changed")
    code, _, err = project("validate")
    assert code == 1 and "does not match the checksum saved for this version" in err
    project.file(3, "Late", "DEFINE x = 'y';")
    assert project("apply", "--next")[0] == 1
    first.write_text(text)
    assert project("validate")[0] == 0


def test_a_failure_is_recorded_and_can_be_mended(project, scene):
    p = project.prefix
    create = (
        "CREATE STREAM IF NOT EXISTS {name} (id INT KEY, v STRING)"
        " WITH (kafka_topic='{name}', value_format='JSON', partitions=1);"
    )
    half = create.format(name=f"{p}_half")
    project.file(1, "start", create.format(name=f"{p}_start"))
    broken = f"{half}\nCREATE STREAM {p}_all AS SELECT id, nothing FROM {p}_half;"
    project.file(2, "break", broken)
    project.file(3, "end", create.format(name=f"{p}_end"))

    code, out, err = project("apply", "--all")
    assert code == 1
    assert "3 migration file(s) loaded." in out and out.count("Successfully migrated") == 1
    assert f"Failed to execute sql: CREATE STREAM {p}_all AS SELECT id, nothing" in err
    (one, two, three) = project.states()
    assert (one[2], two[2], three[2]) == ("MIGRATED", "ERROR", "PENDING")
    assert "NOTHING" in two[4]
    names = {s["name"] for s in scene.client.streams()}
    assert f"{p}_HALF" in names and f"{p}_END" not in names

    project.file(2, "break", broken.replace("nothing", "v"))
    code, out, err = project("apply", "--all")
    assert code == 0, err
    assert [s[2] for s in project.states()] == ["MIGRATED"] * 3
    assert project.states()[1][3:] == ("1", "N/A")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("SHOW STREAMS;", "'SHOW' statements are not supported."),
        ("CREATE STREEM x;", "Syntax Error"),
        ("DROP STREAM IF EXISTS x", "missing semicolon"),
    ],
)
def test_what_cannot_be_parsed_runs_nothing(project, scene, text, part):
    name = f"{project.prefix}_untouched"
    first = f"CREATE STREAM {name} (v INT) WITH (kafka_topic='{name}', value_format='JSON');"
    project.file(1, "mistake", first + text)
    code, _, err = project("apply", "--next")
    assert code == 1
    assert "Failed to parse sql" in err and part in err
    assert project.states()[0][2] == "ERROR"
    assert name.upper() not in {s["name"] for s in scene.client.streams()}


def test_of_two_appliers_at_once_one_wins_and_the_other_says_so(project, scene):
    p = project.prefix
    for version in range(1, 4):
        name = f"{p}_{version}"
        project.file(
            version,
            "one",
            f"CREATE STREAM {name} (v INT)"
            f" WITH (kafka_topic='{name}', value_format='JSON', partitions=1);",
        )
    config = str(project.path / "ksql-migrations.properties")
    codes = []
    appliers = [
        threading.Thread(
            target=lambda: codes.append(main(["migrations", "-c", config, "apply", "--all"]))
        )
        for _ in range(2)
    ]
    for applier in appliers:
        applier.start()
    for applier in appliers:
        applier.join()
    told = project.capsys.readouterr()
    assert sorted(codes) == [0, 1], told
    assert re.search(r"Another apply is under way: .* process \d+, since .* UTC", told.err)
    assert told.out.count("Successfully migrated") == 3
    assert [s[2] for s in project.states()] == ["MIGRATED"] * 3
    assert not [t for t in scene.sql("SHOW TYPES;")[0]["types"] if t.startswith(p)]
