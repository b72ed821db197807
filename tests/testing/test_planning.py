"""`headrace test` on cases that are only planned: no broker, no Spark."""

import json
from pathlib import Path

import pytest

from headrace.cli.main import main

S = "CREATE STREAM S (ID INT KEY, V STRING) WITH (kafka_topic='s', value_format='JSON');"
COPY = "CREATE STREAM C AS SELECT ID, V FROM S;"


def case(**more):
    return {"name": "a case", "statements": [S, COPY], **more}


@pytest.fixture
def run(tmp_path: Path):
    """Runs one JSON case; the case's entry of the report."""

    def run_case(test, *options):
        file = tmp_path / "cases.json"
        file.write_text(json.dumps({"tests": [test]}))
        report = tmp_path / "report.json"
        code = main(["test", str(file), "--report", str(report), "--plan-only", *options])
        cases = json.loads(report.read_text())["cases"]
        return code, cases

    return run_case


def test_what_plans_passes(run):
    code, cases = run(case())
    assert code == 0
    assert [(c["file"], c["name"], c["result"]) for c in cases] == [
        ("cases.json", "a case", "passed")
    ]


@pytest.mark.parametrize(
    ("message", "result"),
    [("NOWHERE does not exist", "passed"), ("some other text", "failed")],
)
def test_errors_are_compared_by_their_text(run, message, result):
    wrong = "CREATE STREAM C AS SELECT * FROM NOWHERE;"
    code, cases = run(case(statements=[S, wrong], expectedException={"message": message}))
    assert cases[0]["result"] == result
    assert code == (result == "failed")


def test_the_statement_belongs_to_the_error(run):
    wrong = "CREATE STREAM C AS SELECT NOTHING FROM S;"
    expected = {"message": f"cannot be resolved.\nStatement: {wrong}"}
    assert run(case(statements=[S, wrong], expectedException=expected))[0] == 0


def test_an_expected_error_must_come(run):
    code, cases = run(case(expectedException={"message": "no way"}))
    assert code == 1
    assert cases[0]["reason"] == "the statements should fail\nexpected: no way\nactual: no error"


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ({"name": "C", "type": "stream", "schema": "ID INT KEY, V STRING"}, "passed"),
        ({"name": "C", "type": "stream", "schema": "ID INT, V STRING"}, "failed"),
        ({"name": "C", "type": "table"}, "failed"),
        ({"name": "C", "type": "stream", "keyFormat": {"format": "KAFKA"}}, "passed"),
        ({"name": "C", "type": "stream", "valueFormat": "KAFKA"}, "failed"),
        ({"name": "D", "type": "stream"}, "failed"),
    ],
)
def test_sources_afterwards(run, source, result):
    assert run(case(post={"sources": [source]}))[1][0]["result"] == result


WRAPPED = ["--set", "ksql.persistence.wrap.single.values=true"]


@pytest.mark.parametrize(
    ("options", "features"), [([], ["UNWRAP_SINGLES"]), (WRAPPED, [])], ids=["default", "set"]
)
def test_single_values_lie_as_a_server_writes_them(run, options, features):
    source = {"name": "C", "type": "stream", "valueFeatures": features}
    assert run(case(post={"sources": [source]}), *options)[1][0]["result"] == "passed"


def test_the_properties_of_a_case_come_before_the_settings_of_all(run):
    source = {"name": "C", "type": "stream", "valueFeatures": ["UNWRAP_SINGLES"]}
    properties = {"ksql.persistence.wrap.single.values": False}
    tested = case(post={"sources": [source]}, properties=properties)
    assert run(tested, *WRAPPED)[1][0]["result"] == "passed"


def test_a_setting_that_does_not_exist(tmp_path, capsys):
    (tmp_path / "cases.json").write_text(json.dumps({"tests": [case()]}))
    assert main(["test", str(tmp_path), "--set", "ksql.no.such=1"]) == 1
    assert "ksql.no.such" in capsys.readouterr().err


def test_a_case_for_each_format(run):
    stream = (
        "CREATE STREAM S (ID INT KEY, V STRING) WITH (kafka_topic='s', value_format='{FORMAT}');"
    )
    _, cases = run(case(statements=[stream], format=["JSON", "DELIMITED"]))
    assert [c["name"] for c in cases] == ["a case - JSON", "a case - DELIMITED"]


def test_disabled_cases_are_skipped(run):
    code, cases = run(case(enabled=False))
    assert code == 0
    assert (cases[0]["result"], cases[0]["reason"]) == ("skipped", "the case is disabled")


def gaps(tmp_path, *names):
    path = tmp_path / "gaps.toml"
    path.write_text(f'[[gap]]\nkind = "notyet"\nreason = "later"\ncases = {json.dumps(names)}\n')
    return ["--gaps", str(path)]


def test_a_listed_failure_is_fine(run, tmp_path):
    wrong = case(statements=["NONSENSE;"])
    assert run(wrong)[0] == 1
    assert run(wrong, *gaps(tmp_path, "any/cases.json: a case"))[0] == 0


def test_a_listed_case_that_passes_fails_the_run(run, tmp_path):
    assert run(case(), *gaps(tmp_path, "cases.json: a case"))[0] == 1


def test_a_listed_case_that_is_not_there_fails_the_run(run, tmp_path, capsys):
    assert run(case(), *gaps(tmp_path, "cases.json: another"))[0] == 1
    assert "does not exist: cases.json: another" in capsys.readouterr().out


def test_a_list_of_gaps_may_say_what_its_cases_assume(run, tmp_path):
    path = tmp_path / "gaps.toml"
    path.write_text('[settings]\n"ksql.persistence.wrap.single.values" = "true"\n')
    source = {"name": "C", "type": "stream", "valueFeatures": []}
    assert run(case(post={"sources": [source]}), "--gaps", str(path))[1][0]["result"] == "passed"


def test_a_gap_needs_a_reason(run, tmp_path, capsys):
    path = tmp_path / "gaps.toml"
    path.write_text('[[gap]]\nkind = "notyet"\ncases = []\n')
    assert main(["test", str(path), "--gaps", str(path)]) == 1


SQL = """\
--@test: schemas
CREATE STREAM foo (id INT KEY, col1 INT) WITH (kafka_topic='foo', value_format='JSON');
CREATE STREAM bar AS SELECT * FROM foo;
ASSERT STREAM bar (id INT KEY, col1 INT) WITH (kafka_topic='BAR', value_format='JSON');

--@test: another schema
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: Expected schema does not match actual
CREATE STREAM foo (id INT KEY, col1 INT) WITH (kafka_topic='foo', value_format='JSON');
ASSERT STREAM foo (id INT KEY, col1 BIGINT) WITH (kafka_topic='foo', value_format='JSON');

--@test: single values as the server has them
CREATE STREAM foo (v INT) WITH (kafka_topic='foo', value_format='JSON');
CREATE STREAM boxed WITH (wrap_single_values=true) AS SELECT * FROM foo;
ASSERT STREAM foo (v INT) WITH (kafka_topic='foo', value_format='JSON', wrap_single_value=false);
ASSERT STREAM foo (v INT) WITH (kafka_topic='foo', value_format='JSON');
ASSERT STREAM boxed (v INT)
  WITH (kafka_topic='BOXED', value_format='JSON', wrap_single_values=true);

--@test: single values of another form
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: Expected value serde features does not match actual for source FOO
CREATE STREAM foo (v INT) WITH (kafka_topic='foo', value_format='JSON');
ASSERT STREAM foo (v INT) WITH (kafka_topic='foo', value_format='JSON', wrap_single_values=true);

--@test: a script
RUN SCRIPT 'script.sql';
ASSERT STREAM foo (id INT KEY) WITH (kafka_topic='foo', value_format='JSON');
"""


def test_sql_files(tmp_path):
    (tmp_path / "tests.sql").write_text(SQL)
    script = "CREATE STREAM foo (id INT KEY) WITH (kafka_topic='foo', value_format='JSON');"
    (tmp_path / "script.sql").write_text(script)
    report = tmp_path / "report.json"
    assert main(["test", str(tmp_path / "tests.sql"), "--report", str(report)]) == 0
    assert [c["name"] for c in json.loads(report.read_text())["cases"]] == [
        "schemas",
        "another schema",
        "single values as the server has them",
        "single values of another form",
        "a script",
    ]


def test_select_and_filter(tmp_path):
    failing = case(name="fails", statements=["NONSENSE;"], expectedException={"message": ""})
    tests = {"tests": [case(name="plans"), failing]}
    (tmp_path / "cases.json").write_text(json.dumps(tests))
    report = tmp_path / "report.json"

    def names(*options):
        main(["test", str(tmp_path), "--report", str(report), *options])
        return [c["name"] for c in json.loads(report.read_text())["cases"]]

    assert names() == ["plans", "fails"]
    assert names("--select", "errors") == ["fails"]
    assert names("--filter", "PLAN") == ["plans"]
    assert main(["test", str(tmp_path), "--filter", "nothing like it"]) == 2


def test_files_that_are_not_there(capsys):
    assert main(["test", "nowhere.json"]) == 1
    assert "There is no file or folder nowhere.json." in capsys.readouterr().err
