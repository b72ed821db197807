"""The option by which commands that plan statements know a server's own functions."""

from __future__ import annotations

import argparse
from pathlib import Path

from headrace.functions.extensions.loading import load_extensions
from headrace.functions.registry import REGISTRY
from headrace.model.errors import HeadraceError


def add_extensions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--extensions",
        type=Path,
        metavar="DIR",
        help="your own functions: the server's ksql.extension.dir",
    )


def use_extensions(directory: Path | None) -> None:
    if directory is None:
        return
    if not directory.is_dir():
        raise HeadraceError(f"{directory} is not a directory.")
    problems = load_extensions(directory, REGISTRY)
    if problems:
        raise HeadraceError("\n".join(map(str, problems)))
