"""`headrace run FILE`: a server that runs the statements of a file, for services and containers."""

from __future__ import annotations

import argparse
from pathlib import Path

from headrace.cli import start


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="SET, UNSET, CREATE and INSERT INTO … SELECT statements, at least one query",
    )
    start.configure(parser)


def run(args: argparse.Namespace) -> int:
    from headrace.server.headless import QUERIES_FILE, read_statements
    from headrace.server.launch import LaunchOptions
    from headrace.server.run import end_soon, serve

    read_statements(args.file)  # a mistake is told before anything is started
    options = start.launch_options(args)
    options["settings"] = {**options["settings"], QUERIES_FILE: str(args.file)}
    return end_soon(serve(LaunchOptions(**options), again=start.command_line))
