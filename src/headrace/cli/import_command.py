"""`headrace import`: takes over what a ksqlDB has."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from headrace.cli.commands import FAILED, OK
from headrace.cli.connections import Connections, add_kafka, client_of
from headrace.cli.extensions import add_extensions, use_extensions
from headrace.cli.output import Output
from headrace.client import Client, ConnectionFailed
from headrace.importing.applying import apply
from headrace.importing.assessment import (
    Assessment,
    Surroundings,
    Verdict,
    Wishes,
    assess,
)
from headrace.importing.existing import Existing, existing_at
from headrace.importing.origins.command_topic import read_command_topic
from headrace.importing.origins.files import read_files
from headrace.importing.origins.ksqldb_server import read_server
from headrace.importing.recorded import DEFAULT_SERVICE, History
from headrace.importing.report import report
from headrace.importing.starts import Start
from headrace.kafka.admin import TopicAdmin
from headrace.model.errors import HeadraceError
from headrace.model.pairs import add_pairs

# A request with all statements may take long.
_SECONDS = 3600.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "origin",
        nargs="*",
        metavar="URL|FILE",
        help="a running ksqlDB, or files: statements, or a backup of its commands",
    )
    parser.add_argument(
        "--command-topic", action="store_true", help="read the command topic of a ksqlDB"
    )
    parser.add_argument(
        "--service-id",
        default=DEFAULT_SERVICE,
        metavar="ID",
        help=f"ksql.service.id of that ksqlDB (default: {DEFAULT_SERVICE})",
    )
    add_kafka(parser, "the Kafka that ksqlDB runs on")
    parser.add_argument(
        "--to",
        default=os.environ.get("HEADRACE_SERVER", "http://localhost:8088"),
        metavar="URL",
        help="the server (default: $HEADRACE_SERVER, or port 8088)",
    )
    parser.add_argument("--user", help="of that server; $HEADRACE_PASSWORD")
    parser.add_argument("--from-user", metavar="USER", help="of ksqlDB; $KSQLDB_PASSWORD")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the report; send nothing to the server"
    )
    parser.add_argument(
        "--show-statements", action="store_true", help="show in the report what is sent"
    )
    parser.add_argument(
        "--suffix",
        default="",
        metavar="TEXT",
        help="run beside ksqlDB: write to topics with this suffix",
    )
    parser.add_argument(
        "--start",
        type=Start,
        choices=list(Start),
        metavar="WHERE",
        help="queries begin: committed (by ksqlDB), earliest or latest",
    )
    parser.add_argument("--leave-out", action="store_true", help="leave out what cannot move")
    parser.add_argument(
        "--while-running",
        action="store_true",
        help="although ksqlDB runs and writes to the same topics",
    )
    add_extensions(parser)
    add_pairs(parser, "-d", "--define", help="define a variable")


def run(args: argparse.Namespace) -> int:
    output = Output(sys.stdout, sys.stderr)
    use_extensions(args.extensions)
    connections = Connections.of(args)
    wishes = Wishes(args.suffix, args.start or _default_start(args.suffix))
    history = _history(args, connections)
    with client_of(
        args.to, args.user, password_variable="HEADRACE_PASSWORD", timeout=_SECONDS
    ) as server:
        around = Surroundings(
            TopicAdmin(connections.kafka) if connections.kafka is not None else None,
            connections.registry,
            _existing(server, output, dry_run=args.dry_run),
        )
        assessment = assess(history, wishes, around)
        for line in report(assessment, texts=args.show_statements):
            output.line(line)
        if args.dry_run:
            return FAILED if assessment.of(Verdict.CANNOT) else OK
        _check(args, assessment, wishes, around)
        return _send(server, assessment, output)


def _existing(server: Client, output: Output, *, dry_run: bool) -> Existing:
    """What the server has; a dry run goes without it."""
    try:
        return existing_at(server)
    except ConnectionFailed as error:
        if not dry_run:
            raise
        output.line(f"{error} What it has already is not considered here.")
        return Existing()


def _default_start(suffix: str) -> Start:
    """Topics of a parallel run are new: they get everything, so that they can be compared."""
    return Start.EARLIEST if suffix else Start.COMMITTED


def _history(args: argparse.Namespace, connections: Connections) -> History:
    if args.command_topic:
        if args.origin:
            raise HeadraceError("Name a ksqlDB, or files, or --command-topic: one of them.")
        if connections.kafka is None:
            raise HeadraceError("Say where the command topic is: --kafka HOST:PORT.")
        return read_command_topic(connections.kafka, args.service_id)
    if not args.origin:
        raise HeadraceError(
            "Say what to import: the address of a ksqlDB, files of statements, or --command-topic."
        )
    first = args.origin[0]
    if not first.startswith(("http://", "https://")):
        return read_files(list(map(Path, args.origin)), args.service_id, dict(args.define))
    if len(args.origin) > 1:
        raise HeadraceError("Import one ksqlDB at a time: the servers of a cluster have the same.")
    with client_of(
        first, args.from_user, password_variable="KSQLDB_PASSWORD", timeout=60.0
    ) as ksqldb:
        return read_server(ksqldb)


def _check(
    args: argparse.Namespace, assessment: Assessment, wishes: Wishes, around: Surroundings
) -> None:
    """Refuses what would lose or double something, before anything is sent."""
    cannot = assessment.of(Verdict.CANNOT)
    if cannot and not args.leave_out:
        raise HeadraceError(
            f"Nothing was sent: {len(cannot)} cannot move (above). --leave-out imports the rest."
        )
    moving = [i for i in assessment.of(Verdict.AS_IS, Verdict.DIFFERS) if i.group is not None]
    if not moving or wishes.suffix:
        return
    if around.admin is None:
        if args.start is None:
            raise HeadraceError(
                "Nothing was sent: queries go on where ksqlDB's had got to, which Kafka knows. Say "
                "--kafka HOST:PORT, or by --start where they begin instead."
            )
        return
    groups = dict.fromkeys(i.group for i in moving if i.group is not None)
    running = [group for group in groups if around.admin.members(group)]
    if running and not args.while_running:
        raise HeadraceError(
            f"Nothing was sent: ksqlDB still runs {len(running)} of these queries "
            f"({', '.join(running[:3])}{', …' if len(running) > 3 else ''}), and both would write "
            "to the same topics. Stop ksqlDB and import from its command topic, or run beside it "
            "with --suffix, or say --while-running."
        )


def _send(server: Client, assessment: Assessment, output: Output) -> int:
    items = assessment.of(Verdict.AS_IS, Verdict.DIFFERS)
    if not items:
        output.line("Nothing to send: the server has it all.")
        return OK
    output.line()
    output.line(f"Sending {len(items)} statements to {server.url}")
    for line in apply(server, items):
        output.line(f"  {line}")
    return OK
