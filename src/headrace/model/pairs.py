"""Parses `NAME=VALUE` options of the command line."""

from __future__ import annotations

import argparse


def add_pairs(parser: argparse.ArgumentParser, *names: str, help: str) -> None:
    """An option that may be given several times; its value is a list of pairs."""
    parser.add_argument(
        *names, action="append", default=[], type=_pair, metavar="NAME=VALUE", help=help
    )


def _pair(text: str) -> tuple[str, str]:
    """The parts of a pair; a value may stand in quotes, as DEFINE and SET have it."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] == "'":
        value = value[1:-1].replace("''", "'")
    return name.strip(), value
