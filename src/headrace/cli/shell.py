"""`headrace cli`: a shell for people, and `-e`, `-f` and pipes for scripts."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Callable

from headrace import __version__
from headrace.cli import builtins
from headrace.cli.builtins import ExitShell
from headrace.cli.commands import FAILED, INTERRUPTED, OK, UNREACHABLE
from headrace.cli.interrupts import ignored, interruptible
from headrace.cli.output import Output
from headrace.cli.shell_session import Format, Session
from headrace.cli.statement_splitter import statements
from headrace.client import Client, ClientError, ConnectionFailed
from headrace.model.errors import HeadraceError
from headrace.model.pairs import add_pairs
from headrace.server.local_servers import local_servers

# Where a server is usually found.
PORT = 8088


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "server",
        nargs="?",
        default=os.environ.get("HEADRACE_SERVER"),
        metavar="URL",
        help="the server (default: $HEADRACE_SERVER, or the one that runs here)",
    )
    once = parser.add_mutually_exclusive_group()
    once.add_argument("-e", "--execute", metavar="SQL", help="run statements, then leave")
    once.add_argument("-f", "--file", metavar="FILE", help="run a file of statements, then leave")
    add_pairs(parser, "-d", "--define", help="define a variable, as DEFINE does")
    add_pairs(parser, "-s", "--set", help="set a property, as SET does")
    parser.add_argument("-u", "--user", help="user name, where the server asks for one")
    parser.add_argument(
        "-p", "--password", help="password (default: $HEADRACE_PASSWORD, or asked for)"
    )
    parser.add_argument(
        "--cacert", metavar="FILE", help="trust this PEM file's certificates (https servers)"
    )
    parser.add_argument(
        "--output",
        type=lambda text: Format(text.upper()),
        default=Format.TABULAR,
        metavar="TABULAR|JSON",
        help="the form of results",
    )
    parser.add_argument(
        "--query-row-limit", type=int, metavar="N", help="end queries after so many rows"
    )
    parser.add_argument(
        "--query-timeout", type=int, metavar="MS", help="end queries after so many milliseconds"
    )


def run(args: argparse.Namespace) -> int:
    output = Output(sys.stdout, sys.stderr)
    try:
        client = Client(
            args.server or _found(),
            user=args.user,
            password=_password(args),
            verify=args.cacert or True,
            properties=dict(args.set),
            variables=dict(args.define),
        )
    except ClientError as error:
        output.error(str(error))
        return UNREACHABLE
    session = Session(client, output)
    session.takes = lambda text: builtins.take(session, text)
    session.format = args.output
    session.row_limit = args.query_row_limit
    session.query_seconds = args.query_timeout / 1000 if args.query_timeout else None
    try:
        if args.execute is not None:
            return once(session, lambda: session.run(args.execute))
        if args.file is not None:
            return once(session, lambda: session.run_file(args.file))
        if not sys.stdin.isatty():
            return once(session, lambda: session.run(sys.stdin.read()))
        return interact(session)
    finally:
        output.spool_off()
        session.client.close()


def _found() -> str:
    """The server that runs on this machine; the usual address if none is known. Of several, the one
    there, or the last to begin."""
    servers = sorted(local_servers(), key=lambda server: server.port != PORT)
    if not servers:
        return f"http://localhost:{PORT}"
    chosen, *others = servers
    if others or chosen.port != PORT:
        also = ", ".join(server.url for server in others)
        more = f"; others that run here: {also}" if others else ""
        print(f"Using the server at {chosen.url}{more}", file=sys.stderr)
    return chosen.url


def _password(args: argparse.Namespace) -> str:
    if args.user is None:
        return ""
    given = args.password if args.password is not None else os.environ.get("HEADRACE_PASSWORD")
    return given if given is not None else getpass.getpass()


def once(session: Session, work: Callable[[], None]) -> int:
    """Runs statements for scripts: the first failure ends the run and sets the exit code."""
    try:
        with interruptible(always=False):
            work()
    except ConnectionFailed as error:
        session.output.error(str(error))
        return UNREACHABLE
    except (ClientError, HeadraceError) as error:
        session.output.error(str(error))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except ExitShell:
        return OK
    return OK


def interact(session: Session) -> int:
    """Runs the interactive shell: failures are shown, and the next line is read."""
    from headrace.cli.prompt import Prompt  # a script has no use for it, and it takes time

    prompt = Prompt(session)
    greet(session)
    with ignored():  # the prompt takes Ctrl-C as a key
        while True:
            try:
                line = prompt.ask()
                if line.strip():
                    session.history.append(line)
                    session.output.keep(f"{prompt.TEXT}{line}")
                    with interruptible(always=True):
                        enter(session, line)
                        prompt.refresh(line)
            except (EOFError, ExitShell):
                session.output.line("Exiting Headrace.")
                return OK
            except KeyboardInterrupt:
                continue
            except (ClientError, HeadraceError) as error:
                session.output.error(str(error))


def enter(session: Session, line: str) -> None:
    """One entry: a command of the shell, which needs no semicolon, or statements."""
    if len(list(statements(line))) > 1 or not builtins.take(session, line):
        session.run(line)


def greet(session: Session) -> None:
    session.output.line(f"Headrace {__version__}: streaming SQL on Spark. Type help for help.")
    try:
        info = session.client.info()
    except ClientError as error:
        session.output.error(str(error))
        session.output.line("Start one with `headrace start`, or choose another: server URL")
    else:
        status = info.get("serverStatus", "")
        session.output.line(f"Server {info['version']} at {session.client.url} {status}".rstrip())
