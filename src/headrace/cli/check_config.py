"""`headrace check-config FILE`: what becomes of each setting of a file. Starts nothing."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path

from headrace.cli.commands import FAILED, OK
from headrace.cli.configuration import Finding, Outcome, examine, merged
from headrace.cli.environment import read_environment
from headrace.cli.properties import read_properties

# A value is shown so far.
_WIDEST = 40


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="properties files; the later ones win"
    )
    parser.add_argument(
        "--environment", action="store_true", help="also KSQL_… variables, as ksqlDB's image does"
    )
    parser.add_argument("--strict", action="store_true", help="unknown names fail the check")


def run(args: argparse.Namespace) -> int:
    layers = [read_properties(file) for file in args.files]
    if args.environment:
        layers.append(read_environment(os.environ))
    findings = examine(merged(layers))
    print("\n".join(_table(findings)))
    failing = {Outcome.REFUSED, Outcome.UNKNOWN} if args.strict else {Outcome.REFUSED}
    return FAILED if any(f.outcome in failing for f in findings) else OK


def _table(findings: list[Finding]) -> list[str]:
    names = max((len(f.name) for f in findings), default=0)
    values = max((len(_short(f.value)) for f in findings), default=0)
    kinds = max(len(outcome.value) for outcome in Outcome)
    lines = [
        f"{f.name:<{names}}  {_short(f.value):<{values}}  {f.outcome.value:<{kinds}}  {f.note}"
        for f in sorted(findings, key=lambda f: (list(Outcome).index(f.outcome), f.name))
    ]
    counts = Counter(f.outcome for f in findings)
    told = ", ".join(f"{counts[o]} {o.value}" for o in Outcome if counts[o])
    total = f"{len(findings)} settings" + (f": {told}" if told else "")
    return [*(line.rstrip() for line in lines), "", total]


def _short(value: str) -> str:
    return value if len(value) <= _WIDEST else value[: _WIDEST - 1] + "…"
