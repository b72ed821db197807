"""Commands of the shell itself, one row each. They need no semicolon and no server."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headrace import __version__
from headrace.cli.shell_session import Format, Session
from headrace.model.errors import HeadraceError


class ExitShell(Exception):
    """Raised when the user exits the shell."""


@dataclass(frozen=True)
class Builtin:
    """A builtin command; `arguments` are the least and the most it takes."""

    name: str
    usage: str
    help: str
    arguments: tuple[int, int]
    run: Callable[[Session, list[str]], None]


def _help(session: Session, arguments: list[str]) -> None:
    wanted = " ".join(arguments).lower()
    chosen = [b for b in BUILTINS if b.name.startswith(wanted)] or list(BUILTINS)
    for builtin in chosen:
        session.output.line(f"{builtin.usage:<32} {builtin.help}")
    if len(chosen) == len(BUILTINS):
        for line in _KEYS:
            session.output.line(line)


_KEYS = (
    "",
    "Everything else is a SQL statement; it ends with a semicolon and may take many lines.",
    "Ctrl-C ends a running query, or clears the line. Ctrl-D leaves. Ctrl-R searches the history.",
    "Up and down go through the history; Tab completes.",
)


def _leave(session: Session, arguments: list[str]) -> None:
    raise ExitShell


def _clear(session: Session, arguments: list[str]) -> None:
    session.output.clear()


def _output(session: Session, arguments: list[str]) -> None:
    if not arguments:
        session.output.line(f"Current output format: {session.format}")
        return
    try:
        session.format = Format(arguments[0].upper())
    except ValueError:
        valid = ", ".join(f"'{f}'" for f in Format)
        raise HeadraceError(
            f"Invalid output format: '{arguments[0]}' (valid formats: {valid})"
        ) from None
    session.output.line(f"Output format set to {session.format}")


def _server(session: Session, arguments: list[str]) -> None:
    if arguments:
        new = session.client.connect(arguments[0])
        new.info()
        session.client.close()
        session.client = new
        session.output.line(f"Server now: {new.url}")
    else:
        session.output.line(session.client.url)


def _spool(session: Session, arguments: list[str]) -> None:
    if arguments[0].upper() == "OFF":
        session.output.spool_off()
    else:
        session.output.spool_to(Path(arguments[0]).expanduser())


def _history(session: Session, arguments: list[str]) -> None:
    for number, line in enumerate(session.history, 1):
        session.output.line(f"{number:4d}: {line}")


def _version(session: Session, arguments: list[str]) -> None:
    session.output.line(f"Version: {__version__}")


def _run_script(session: Session, arguments: list[str]) -> None:
    session.run_file(arguments[0])


def _on_or_off(value: str) -> bool:
    try:
        return {"ON": True, "OFF": False}[value.upper()]
    except KeyError:
        raise HeadraceError(f"Invalid value: {value}. Valid options are 'ON' and 'OFF'.") from None


def _set_cli(session: Session, arguments: list[str]) -> None:
    if not arguments:
        session.output.line(f"WRAP         {'ON' if session.wrap else 'OFF'}")
        session.output.line(f"COLUMN-WIDTH {session.column_width or 'as the terminal allows'}")
        return
    if len(arguments) != 2:
        raise HeadraceError("Usage: set cli WRAP ON|OFF; set cli COLUMN-WIDTH <number>")
    name, value = arguments[0].upper(), arguments[1]
    if name == "WRAP":
        session.wrap = _on_or_off(value)
    elif name == "COLUMN-WIDTH":
        if not value.isdecimal():
            raise HeadraceError(f"Invalid value: {value}. COLUMN-WIDTH is a number; 0 for none.")
        session.column_width = int(value) or None
    else:
        raise HeadraceError(f"Undefined property: {name}. Valid properties: WRAP, COLUMN-WIDTH")


def _pipelining(session: Session, arguments: list[str]) -> None:
    if arguments:
        session.pipelining = _on_or_off(arguments[0])
    setting = "ON" if session.pipelining else "OFF"
    session.output.line(f"Current request-pipelining configuration: {setting}")


BUILTINS: tuple[Builtin, ...] = (
    Builtin("help", "help [command]", "This list.", (0, 2), _help),
    Builtin("exit", "exit", "ExitShell.", (0, 0), _leave),
    Builtin("quit", "quit", "ExitShell.", (0, 0), _leave),
    Builtin("clear", "clear", "Clear the terminal.", (0, 0), _clear),
    Builtin("output", "output [TABULAR|JSON]", "Show or set the form of results.", (0, 1), _output),
    Builtin("server", "server [URL]", "Show the server, or change to another.", (0, 1), _server),
    Builtin("spool", "spool 'FILE' | OFF", "Copy the session into a file.", (1, 1), _spool),
    Builtin("history", "history", "What was entered in this session.", (0, 0), _history),
    Builtin("version", "version", "The version of this program.", (0, 0), _version),
    Builtin("run script", "run script 'FILE'", "Run a file's statements.", (1, 1), _run_script),
    Builtin(
        "set cli",
        "set cli [WRAP ON|OFF | COLUMN-WIDTH N]",
        "How the rows of queries are shown.",
        (0, 2),
        _set_cli,
    ),
    Builtin(
        "request-pipelining",
        "request-pipelining [ON|OFF]",
        "Whether statements wait for those before them.",
        (0, 1),
        _pipelining,
    ),
)


def find(line: str) -> tuple[Builtin, list[str]] | None:
    """The builtin command of a line, with its arguments; None if the line is SQL."""
    text = line.strip().rstrip(";").strip()
    for builtin in BUILTINS:
        name = builtin.name.split()
        *words, rest = [*text.split(maxsplit=len(name)), ""][: len(name) + 1]
        if [word.lower() for word in words] == name:
            return builtin, _arguments(rest)
    return None


def _arguments(text: str) -> list[str]:
    words = shlex.shlex(text, posix=True, punctuation_chars=False)
    words.whitespace_split = True
    words.commenters = ""
    words.escape = ""
    try:
        return list(words)
    except ValueError:
        return text.split()


def take(session: Session, line: str) -> bool:
    """Runs a line that is a command of the shell; False if it is SQL."""
    found = find(line)
    if found is None:
        return False
    builtin, arguments = found
    least, most = builtin.arguments
    if not least <= len(arguments) <= most:
        problem = "few" if len(arguments) < least else "many"
        raise HeadraceError(f"Too {problem} parameters. Usage: {builtin.usage}")
    builtin.run(session, arguments)
    return True
