"""`headrace package`: writes what executors need of Headrace into one file."""

from __future__ import annotations

import argparse
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from headrace import __version__
from headrace.cli.commands import OK
from headrace.model.errors import UnavailableError

DEFAULT_FILE = f"headrace-{__version__}.zip"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        nargs="?",
        default=Path(DEFAULT_FILE),
        help=f"what to write (default: {DEFAULT_FILE})",
    )
    parser.add_argument(
        "--with-dependencies",
        action="store_true",
        help="add the pinned dependencies as they are installed here: executors then need only "
        "Spark and the same Python on the same kind of machine",
    )
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="NAME",
        help="add an installed distribution and what it requires, for your own functions; may be "
        "repeated",
    )


def run(args: argparse.Namespace) -> int:
    from headrace.spark.runtime.package import DIRECTORY, dependencies, write_package

    wanted = [*args.also, *(dependencies() if args.with_dependencies else ())]
    try:
        write_package(args.file, wanted)
    except PackageNotFoundError as missing:
        raise UnavailableError(f"{missing.name} is not installed here.") from None
    size = args.file.stat().st_size / 1e6
    print(f"{args.file}: {size:.1f} MB. Put it where every executor can read it, and set")
    print(f"  spark.archives=<its address>#{DIRECTORY}")
    return OK
