"""Calls in calls, each of which can fail: what fails is null, the rest goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.cli.main import main

STATEMENTS = [
    "CREATE STREAM S (ID INT KEY, J STRING, N INT) WITH (kafka_topic='s', value_format='JSON');",
    """CREATE STREAM O AS SELECT ID,
         CAST(EXTRACTJSONFIELD(J, '$.a') AS INT) AS A,
         COALESCE(CAST(EXTRACTJSONFIELD(J, '$.b') AS INT), CAST(J AS INT), -1) AS B,
         STRUCT(X := CAST(CONCAT(EXTRACTJSONFIELD(J, '$.a'), '0') AS BIGINT),
                Y := STRUCT(Z := CAST(EXTRACTJSONFIELD(J, '$.b') AS DOUBLE))) AS J,
         CASE WHEN N > 0 THEN CAST(EXTRACTJSONFIELD(J, '$.a') AS INT) / N ELSE 7 END AS C,
         TRANSFORM(ARRAY[N], X => X + CAST(EXTRACTJSONFIELD(J, '$.a') AS INT)) AS N
       FROM S;""",
]


def document(**fields: object) -> str:
    return json.dumps(fields)


@pytest.mark.heavy
def test_calls_in_calls(tmp_path: Path):
    given = [
        (document(a="1", b="2"), 1),
        (document(a="1", b="x"), 0),
        (document(a="x"), 2),
        ("{", 3),
    ]
    expected = [
        {"A": 1, "B": 2, "J": {"X": 10, "Y": {"Z": 2.0}}, "C": 1, "N": [2]},
        {"A": 1, "B": -1, "J": {"X": 10, "Y": {"Z": None}}, "C": 7, "N": [1]},
        {"A": None, "B": -1, "J": {"X": None, "Y": {"Z": None}}, "C": None, "N": None},
        {"A": None, "B": -1, "J": {"X": 0, "Y": {"Z": None}}, "C": None, "N": None},
    ]
    case = {
        "name": "nested",
        "statements": STATEMENTS,
        "inputs": [
            {"topic": "s", "key": i, "value": {"J": j, "N": n}} for i, (j, n) in enumerate(given)
        ],
        "outputs": [{"topic": "O", "key": i, "value": value} for i, value in enumerate(expected)],
    }
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"tests": [case]}))
    report = tmp_path / "report.json"
    main(["test", str(file), "--direct", "--report", str(report)])
    (result,) = json.loads(report.read_text())["cases"]
    assert result["result"] == "passed", result["reason"]
