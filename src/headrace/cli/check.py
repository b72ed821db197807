"""`headrace check`: how ksqlDB's scripts fare here, without a server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from headrace.cli.commands import FAILED, OK
from headrace.cli.connections import Connections, add_registry
from headrace.cli.extensions import add_extensions, use_extensions
from headrace.cli.output import Output
from headrace.importing.assessment import Surroundings, Verdict, assess
from headrace.importing.origins.files import read_files
from headrace.importing.recorded import DEFAULT_SERVICE
from headrace.importing.report import report
from headrace.model.pairs import add_pairs


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="+", type=Path, metavar="FILE", help="files of statements")
    parser.add_argument(
        "--show-statements", action="store_true", help="show the statements as they would be sent"
    )
    add_registry(parser)
    add_extensions(parser)
    add_pairs(parser, "-d", "--define", help="define a variable, as DEFINE does")


def run(args: argparse.Namespace) -> int:
    output = Output(sys.stdout, sys.stderr)
    use_extensions(args.extensions)
    history = read_files(args.file, DEFAULT_SERVICE, dict(args.define))
    assessment = assess(history, surroundings=Surroundings(None, Connections.of(args).registry))
    for line in report(assessment, texts=args.show_statements):
        output.line(line)
    return FAILED if assessment.of(Verdict.CANNOT) else OK
