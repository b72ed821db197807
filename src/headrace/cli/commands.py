"""The commands of `headrace`, one row each.

A command is a module with `configure(parser)`, which declares its arguments, and `run(args)`,
which does the work and returns the exit code. Modules are imported when their command is used,
so that `headrace --help` does not wait for Spark.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from headrace.model.errors import HeadraceError

_NOT_INSTALLED = (
    "headrace {} needs the server, and {} is not installed here, as after an installation of the "
    "client alone. This installs the server: pip install 'headrace[server]'"
)
# Exit codes.
OK, FAILED, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130


@dataclass(frozen=True)
class Command:
    name: str
    summary: str
    module: str
    example: str

    def parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"headrace {self.name}",
            description=self.summary,
            epilog=f"example:\n  {self.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._module().configure(parser)
        return parser

    def run(self, arguments: list[str]) -> int:
        try:
            return int(self._module().run(self.parser().parse_args(arguments)))
        except ModuleNotFoundError as missing:
            package = (missing.name or "").partition(".")[0]
            if package in ("", "headrace"):
                raise
            raise HeadraceError(_NOT_INSTALLED.format(self.name, package)) from None

    def _module(self) -> Any:
        return import_module(self.module)


COMMANDS: tuple[Command, ...] = (
    Command(
        "start",
        "Start a server, with its own Kafka broker and schema registry unless told otherwise.",
        "headrace.cli.start",
        "headrace start --port 8088 --data-dir ./data",
    ),
    Command(
        "run",
        "Start a server that runs the statements of a file; nobody can change them from outside.",
        "headrace.cli.run",
        "headrace run pipeline.sql --kafka broker:9092 --data-dir /var/lib/headrace",
    ),
    Command(
        "check-config",
        "Print what becomes of each setting of a properties file of ksqlDB; starts nothing.",
        "headrace.cli.check_config",
        "headrace check-config ksql-server.properties",
    ),
    Command(
        "cli",
        "Talk to a server: interactively, or with -e and -f as part of a script.",
        "headrace.cli.shell",
        "headrace cli http://localhost:8088 -e 'SHOW STREAMS;'",
    ),
    Command(
        "migrations",
        "Keep a cluster's statements in numbered files, and apply them in order.",
        "headrace.cli.migrations.command",
        "headrace migrations new-project shop http://localhost:8088",
    ),
    Command(
        "import",
        "Take over what a ksqlDB has: types, sources, queries, settings and offsets.",
        "headrace.cli.import_command",
        "headrace import --command-topic --kafka broker:9092 --dry-run",
    ),
    Command(
        "check",
        "Say how the statements of ksqlDB's scripts fare here; needs no server.",
        "headrace.cli.check",
        "headrace check pipeline.sql",
    ),
    Command(
        "compare",
        "Say whether two topics hold the same.",
        "headrace.cli.compare",
        "headrace compare ORDERS ORDERS_HR --kafka broker:9092 --wait 60",
    ),
    Command(
        "demo",
        "Start a server, run a small pipeline and show what it does; checks the result.",
        "headrace.cli.demo",
        "headrace demo --keep",
    ),
    Command(
        "datagen",
        "Write made-up records to a topic: ksql-datagen's quickstarts, or by an Avro schema.",
        "headrace.cli.datagen",
        "headrace datagen quickstart=orders msgRate=5",
    ),
    Command(
        "reference",
        "Print the reference of functions, settings or WITH properties as Markdown.",
        "headrace.cli.reference",
        "headrace reference functions > functions.md",
    ),
    Command(
        "test",
        "Run test files: statements and records in, records out, errors, assertions.",
        "headrace.testing.command",
        "headrace test tests/ --filter join",
    ),
    Command(
        "package",
        "Write what Spark's executors on other machines need of Headrace into one file.",
        "headrace.cli.package",
        "headrace package --with-dependencies",
    ),
    Command(
        "bench",
        "Measure this machine: Headrace beside PySpark by hand and Kafka Streams, in one run.",
        "headrace.bench.command",
        "headrace bench stateless-json --records 200000 --repeats 1",
    ),
    Command(
        "password",
        "Print a line for the file of users of a server that asks for passwords.",
        "headrace.cli.password",
        "headrace password alice --role write >> users.txt",
    ),
)

DEFAULT = "cli"
