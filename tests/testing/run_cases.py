"""Cases of ksqlDB's kind, written in Python, run as `headrace test` runs a file of them."""

from __future__ import annotations

import json
from pathlib import Path

from headrace.cli.main import main


def failures(folder: Path, cases: list[dict], *options: str) -> dict[str, str]:
    """Why cases failed, by their names; all of them were run."""
    file, report = folder / "cases.json", folder / "report.json"
    file.write_text(json.dumps({"tests": cases}))
    main(["test", str(file), *options, "--report", str(report)])
    results = json.loads(report.read_text())["cases"]
    assert len(results) == len(cases)
    return {
        r["case"]: f"{r['reason']}\n{r.get('expected')}\n{r.get('actual')}"
        for r in results
        if r["result"] != "passed"
    }
