"""`headrace password`: prints a line for a server's credentials file."""

from __future__ import annotations

import argparse
import getpass
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the user's name")
    parser.add_argument(
        "--role",
        choices=("read", "write"),
        default="read",
        help="read: may ask; write: may do everything (default: read)",
    )


def run(args: argparse.Namespace) -> int:
    from headrace.server.auth import credentials_line

    if ":" in args.name or not args.name:
        print("A user's name is not empty and has no colon.", file=sys.stderr)
        return 2
    password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    print(credentials_line(args.name, password, (args.role,)))
    return 0
