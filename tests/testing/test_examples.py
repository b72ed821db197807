"""`headrace test` on the examples for users: each form, streaming and direct."""

import json
from pathlib import Path

import pytest

from headrace.cli.main import main

pytestmark = pytest.mark.heavy

EXAMPLES = Path(__file__).parents[2] / "examples" / "testing"
SEPARATE = EXAMPLES / "separate"
WRONG = {
    "name": "wrong",
    "statements": [
        "CREATE STREAM S (ID INT KEY, V INT) WITH (kafka_topic='s', value_format='JSON');",
        "CREATE STREAM D AS SELECT ID, V * 2 AS V FROM S;",
    ],
    "inputs": [{"topic": "s", "key": 1, "value": 1}],
    "outputs": [{"topic": "D", "key": 1, "value": 3}],
}

ASKED = {
    "name": "asked",
    "statements": [
        "CREATE STREAM S (ID INT KEY, V INT) WITH (kafka_topic='s', value_format='JSON');",
        "CREATE TABLE T AS SELECT ID, COUNT(*) AS N FROM S GROUP BY ID;",
        "SELECT * FROM T WHERE ID = 1;",
        "SELECT ID, V FROM S EMIT CHANGES LIMIT 1;",
    ],
    "inputs": [{"topic": "s", "key": 1, "value": v} for v in (5, 6)],
    "responses": [
        {"admin": {"@type": "currentStatus"}},
        {"admin": {"@type": "currentStatus"}},
        {
            "query": [
                {"header": {"schema": "`ID` INTEGER KEY, `N` BIGINT"}},
                {"row": {"columns": [1, 2]}},
            ]
        },
        {
            "query": [
                {"header": {"schema": "`ID` INTEGER, `V` INTEGER"}},
                {"row": {"columns": [1, 5]}},
                {"finalMessage": "Limit Reached"},
            ]
        },
    ],
}
REFUSED = {
    "name": "refused",
    "statements": ["SELECT * FROM NOWHERE;"],
    "expectedError": {"message": "NOWHERE does not exist.", "status": 400},
}


@pytest.mark.parametrize("options", [[], ["--direct"]], ids=["streaming", "direct"])
def test_every_form(options, tmp_path, capsys):
    report = tmp_path / "report.json"
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({"tests": [WRONG]}))
    paths = [str(EXAMPLES / "orders.sql"), str(EXAMPLES / "orders.json"), str(wrong)]
    assert main(["test", *paths, *options, "--report", str(report)]) == 1
    results = {
        c["name"]: (c["result"], c["reason"]) for c in json.loads(report.read_text())["cases"]
    }
    assert results.pop("wrong") == (
        "failed",
        "topic D holds other records\nexpected: 1: 3\nactual: 1: 2",
    )
    assert {result for result, _ in results.values()} == {"passed"}, results
    assert len(results) == 6
    files = ["-s", "statements.sql", "-i", "input.json", "-o", "output.json"]
    places = [f if f.startswith("-") else str(SEPARATE / f) for f in files]
    assert main(["test", *places, *options]) == 0
    assert "1 passed" in capsys.readouterr().out


def test_answers_of_a_server(tmp_path):
    report = tmp_path / "report.json"
    cases = tmp_path / "cases.json"
    cases.write_text(json.dumps({"tests": [ASKED, REFUSED]}))
    main(["test", str(cases), "--report", str(report)])
    results = json.loads(report.read_text())["cases"]
    assert [(c["result"], c["reason"]) for c in results] == [("passed", "")] * 2
