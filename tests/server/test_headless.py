"""The file of `headrace run`: what it may hold, what of it runs already, and who may change it."""

import pytest

from headrace.catalog.catalog import Catalog, QueryRecord
from headrace.cli.main import main
from headrace.model.entities import WarningEntity
from headrace.model.schema import Schema
from headrace.model.sources import Serde, Source, SourceKind
from headrace.server.headless import apply, read_statements
from headrace.sql.parser import parse

CREATE = "CREATE STREAM s (id INT KEY, v STRING) WITH (kafka_topic='s', value_format='JSON');"
QUERY = "CREATE STREAM t AS SELECT * FROM s EMIT CHANGES;"


class Recorder:
    """Stands for the engine: knows a catalog, and keeps what it was asked to run."""

    def __init__(self, *known):
        self.catalog = Catalog()
        self.ran = []
        self.answers = []
        for number, text in enumerate(known):
            name = parse(text)[0].statement.name
            source = Source(
                name,
                SourceKind.STREAM,
                Schema(()),
                name,
                Serde("KAFKA"),
                Serde("JSON"),
                statement=text,
            )
            self.catalog = self.catalog.with_source(source)
            if " AS " in text:
                query = QueryRecord(f"CSAS_{name}_{number}", text, (), name)
                self.catalog = self.catalog.with_query(query)

    def execute(self, request):
        self.ran.append(request.text)
        return self.answers


def applied(engine, *statements):
    told = []
    apply(engine, parse("\n".join(statements)), told.append)
    return engine.ran, told


def test_what_is_new_is_run_in_one_request():
    ran, _ = applied(Recorder(), CREATE, QUERY)
    assert ran == [f"{CREATE}\n{QUERY}"]


def test_warnings_are_told():
    engine = Recorder()
    engine.answers = [WarningEntity(CREATE, "it is there", warnings=("beware",))]
    assert applied(engine, CREATE, QUERY)[1] == ["  Warning: beware"]


def test_what_runs_already_is_left_alone_however_it_is_written():
    spread = QUERY.replace("SELECT", "\n  select").replace(" t ", " T ")
    ran, _ = applied(Recorder(CREATE, QUERY), "SET 'auto.offset.reset'='earliest';", CREATE, spread)
    assert ran == ["SET 'auto.offset.reset'='earliest';"]


def test_columns_that_the_registry_filled_in_are_no_difference():
    inferred = "CREATE STREAM s WITH (kafka_topic='s', value_format='JSON');"
    assert applied(Recorder(CREATE, QUERY), inferred, QUERY)[0] == [""]
    other = CREATE.replace("v STRING", "v INT")
    assert applied(Recorder(CREATE, QUERY), other, QUERY)[0] == [other]


def test_queries_that_left_the_file_are_terminated():
    ran, told = applied(Recorder(CREATE, QUERY), CREATE, QUERY.replace("t", "u", 1))
    assert ran[1:] == ["TERMINATE CSAS_T_1;"]
    assert told == ["  CSAS_T_1 is not in the file any more: terminated"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (CREATE, "does not contain any persistent queries"),
        (QUERY + "DROP STREAM s;", "Unsupported statement."),
        (QUERY + "INSERT INTO s VALUES (1, 'a');", "Unsupported statement."),
        ("CREATE STREEM;", "Syntax Error"),
        (None, "Could not read the query file"),
    ],
)
def test_a_file_that_makes_no_sense_is_told_before_anything_starts(capsys, tmp_path, text, part):
    path = tmp_path / "pipeline.sql"
    if text is not None:
        path.write_text(text)
    assert main(["run", str(path)]) == 1
    assert part in capsys.readouterr().err


def test_statements_keep_their_text(tmp_path):
    path = tmp_path / "pipeline.sql"
    path.write_text(f"-- what for\n{CREATE}\n{QUERY}")
    assert [one.text for one in read_statements(path)] == [CREATE, QUERY]
