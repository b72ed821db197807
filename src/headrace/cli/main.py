"""The entry point of `headrace`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches

from headrace import __version__
from headrace.cli.commands import COMMANDS, DEFAULT, FAILED, INTERRUPTED, OK, USAGE, Command
from headrace.client.errors import ClientError
from headrace.model.errors import HeadraceError


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return dispatch(arguments)
    except (HeadraceError, ClientError) as error:
        print(error, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has left (`headrace … | head`); there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def dispatch(arguments: list[str]) -> int:
    table = {command.name: command for command in COMMANDS}
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help", "help"):
        print(overview(COMMANDS))
        return OK
    if first in ("-V", "--version"):
        print(f"headrace {__version__}")
        return OK
    if first in table:
        return table[first].run(arguments[1:])
    if first.isidentifier():
        close = get_close_matches(first, table, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else " See headrace --help."
        print(f"Unknown command '{first}'.{hint}", file=sys.stderr)
        return USAGE
    return table[DEFAULT].run(arguments)


def overview(commands: Sequence[Command]) -> str:
    lines = "\n".join(f"  {c.name:<12} {c.summary}" for c in commands)
    return (
        "Headrace: streaming SQL on Spark, in ksqlDB's language and wire protocol.\n\n"
        "usage: headrace [COMMAND] [OPTIONS]     without a command: cli\n\n"
        f"commands:\n{lines}\n\n"
        "headrace COMMAND --help tells a command's options.\n\n"
        "example:\n  headrace start\n  headrace -e 'SHOW STREAMS;'"
    )


if __name__ == "__main__":
    sys.exit(main())
