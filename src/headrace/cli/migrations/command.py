"""The commands of `headrace migrations`, one row each."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from headrace.cli.commands import FAILED, OK
from headrace.cli.migrations import files
from headrace.cli.migrations.applying import Target, apply, validate
from headrace.cli.migrations.config import Config
from headrace.cli.migrations.lock import only_applier
from headrace.cli.migrations.metadata import NOT_KNOWN, Applied, Metadata, State
from headrace.cli.output import Output
from headrace.cli.properties import read_properties
from headrace.cli.text_tables import table
from headrace.client import ClientError
from headrace.model.errors import HeadraceError
from headrace.model.pairs import add_pairs

Arguments = argparse.Namespace


@dataclass(frozen=True)
class Command:
    name: str
    summary: str
    example: str
    run: Callable[[Arguments, Output], None]
    configure: Callable[[argparse.ArgumentParser], None] = lambda parser: None


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c", "--config-file", type=Path, metavar="FILE", help="the project's configuration"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for command in COMMANDS:
        own = commands.add_parser(
            command.name,
            help=command.summary,
            description=command.summary,
            epilog=f"example:\n  headrace migrations {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        # Taken on either side of the command, as ksqlDB's tool does.
        own.add_argument(
            "-c",
            "--config-file",
            type=Path,
            metavar="FILE",
            default=argparse.SUPPRESS,
            help="the project's configuration" if command.name != "new-project" else "not expected",
        )
        command.configure(own)
        own.set_defaults(command=command)


def run(args: Arguments) -> int:
    output = Output(sys.stdout, sys.stderr)
    began = time.monotonic()
    command: Command = args.command
    try:
        command.run(args, output)
        code = OK
    except (HeadraceError, ClientError) as error:
        output.error(str(error))
        code = FAILED
    output.line(f"Execution time: {time.monotonic() - began:.4f} seconds")
    return code


def _config(args: Arguments) -> Config:
    if args.config_file is None:
        raise HeadraceError(
            "Migrations config file required but not specified. "
            "Specify with --config-file (or, equivalently, -c)."
        )
    return Config.load(args.config_file)


# --------------------------------------------------------------------------------- commands


def _new_project(args: Arguments, output: Output) -> None:
    if args.config_file is not None:
        raise HeadraceError(
            "This command does not expect a config file to be passed. Rather, this command will "
            "create one as part of preparing the migrations directory."
        )
    files.new_project(args.path, args.server, output)


def _new_project_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, metavar="PATH", help="the project's directory")
    parser.add_argument("server", metavar="URL", help="the server's address")


def _create(args: Arguments, output: Output) -> None:
    files.create(_config(args).directory, args.description, args.version, output)


def _create_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-v", "--version", type=_version, metavar="N", help="its number (default: the next)"
    )
    parser.add_argument("description", metavar="DESCRIPTION", help="what the migration does")


def _version(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= files.LAST_VERSION:
        raise argparse.ArgumentTypeError(f"'{text}' is not a version (1 to {files.LAST_VERSION})")
    return int(text)


def _initialize(args: Arguments, output: Output) -> None:
    config = _config(args)
    with config.connect() as client:
        Metadata(config, client, output).initialize()


def _destroy(args: Arguments, output: Output) -> None:
    config = _config(args)
    with config.connect() as client:
        Metadata(config, client, output).destroy()


def _validate(args: Arguments, output: Output) -> None:
    config = _config(args)
    with config.connect() as client:
        metadata = Metadata(config, client, output)
        metadata.check()
        validate(metadata)
    output.line("Successfully validated checksums for migrations that have already been applied")


def _apply(args: Arguments, output: Output) -> None:
    config = _config(args)
    headers = read_properties(args.headers) if args.headers is not None else {}
    target = Target(args.version, args.until, args.next)
    with config.connect(headers) as client:
        metadata = Metadata(config, client, output)
        metadata.check()
        if args.dry_run:
            output.line(
                "This is a dry run. No ksqlDB statements will be submitted to the ksqlDB server."
            )
        locked = nullcontext() if args.dry_run else only_applier(client, config.stream)
        with locked:
            apply(metadata, target, dict(args.define), dry_run=args.dry_run)


def _apply_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("-a", "--all", action="store_true", help="all that are not applied yet")
    which.add_argument("-n", "--next", action="store_true", help="the next one")
    which.add_argument(
        "-u", "--until", type=_version, metavar="N", help="all up to and including this version"
    )
    which.add_argument("-v", "--version", type=_version, metavar="N", help="this version alone")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be sent; send nothing"
    )
    add_pairs(
        parser,
        "-d",
        "--define",
        help="define a variable, as DEFINE at the start of each file does",
    )
    parser.add_argument(
        "--headers", type=Path, metavar="FILE", help="HTTP headers to send along, NAME: VALUE"
    )


_COLUMNS = (
    "Version",
    "Name",
    "State",
    "Previous Version",
    "Started On",
    "Completed On",
    "Error Reason",
)


def _info(args: Arguments, output: Output) -> None:
    config = _config(args)
    with config.connect() as client:
        metadata = Metadata(config, client, output)
        metadata.check()
        output.line(f"Current migration version: {metadata.current()}")
        known = files.migrations(config.directory, output)
        rows = [(metadata.find(str(m.version)) or _pending(m)).cells() for m in known]
    if not rows:
        output.line("No migrations files found")
        return
    lines = list(table(_COLUMNS, rows, output.width))
    for line in (lines[1], *lines):  # ksqlDB's tool rules the top, too
        output.line(line)


def _pending(file: files.MigrationFile) -> Applied:
    nothing: Mapping[str, str] = dict.fromkeys(
        ("checksum", "previous", "started_on", "completed_on"), NOT_KNOWN
    )
    return Applied(version=str(file.version), name=file.name, state=State.PENDING, **nothing)


_PROJECT = "-c shop/ksql-migrations.properties"
COMMANDS: tuple[Command, ...] = (
    Command(
        "new-project",
        "Make a project: a directory for migrations, and its configuration.",
        "new-project shop http://localhost:8088",
        _new_project,
        _new_project_arguments,
    ),
    Command(
        "initialize-metadata",
        "Make the stream and table that tell which migrations a server has.",
        f"{_PROJECT} initialize-metadata",
        _initialize,
    ),
    Command(
        "create",
        "Make an empty file for the next migration.",
        f"{_PROJECT} create Add_orders",
        _create,
        _create_arguments,
    ),
    Command(
        "apply",
        "Run migrations that the server does not have yet.",
        f"{_PROJECT} apply --next --define partitions=4",
        _apply,
        _apply_arguments,
    ),
    Command(
        "validate",
        "Compare the files of applied migrations with what was applied.",
        f"{_PROJECT} validate",
        _validate,
    ),
    Command(
        "info",
        "Show the current version, and the state of every migration.",
        f"{_PROJECT} info",
        _info,
    ),
    Command(
        "destroy-metadata",
        "Delete the metadata stream and table, and their topics. There is no way back.",
        f"{_PROJECT} destroy-metadata",
        _destroy,
    ),
)
