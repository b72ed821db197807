"""`headrace start`: runs the server."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.cli.configuration import checked, merged
from headrace.cli.environment import read_environment
from headrace.cli.properties import read_properties
from headrace.model.pairs import add_pairs

# The options that say where a part of the server listens, by the part.
_PORTS = {"--port": "server", "--kafka-port": "kafka", "--registry-port": "registry"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, help="of the REST API (default: 8088)")
    parser.add_argument(
        "--kafka-port", type=_port, metavar="PORT", help="of the embedded broker (default: 9092)"
    )
    parser.add_argument(
        "--registry-port",
        type=_port,
        metavar="PORT",
        help="of the embedded schema registry (default: 8081)",
    )
    parser.add_argument(
        "--kafka", metavar="HOST:PORT", help="use this Kafka; start no broker and no registry"
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="where topics and states are kept (default: ~/.local/share/headrace)",
    )
    parser.add_argument(
        "--config",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a properties file with ksqlDB's names; of several, the later ones win",
    )
    parser.add_argument(
        "--environment",
        action="store_true",
        help="also take KSQL_… variables, as ksqlDB's image does; they win over files",
    )
    add_pairs(parser, "--set", help="one setting; wins over files and variables")
    parser.add_argument("--strict", action="store_true", help="refuse settings of unknown names")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port (0 to 65535)")
    return int(text)


def settings(args: argparse.Namespace) -> Mapping[str, str]:
    """The files' settings, those of the environment over them, and those of the command line over
    these. Prints what somebody should know of them."""
    layers = [read_properties(file) for file in args.config]
    if args.environment:
        layers.append(read_environment(os.environ))
    layers.append(dict(args.set))
    if args.kafka:
        layers.append({"bootstrap.servers": args.kafka})
    chosen, findings = checked(merged(layers), args.strict)
    for finding in findings:
        print(f"warning: {finding}", file=sys.stderr)
    return chosen


def launch_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of the command line; what is not given keeps its default."""
    names = ("host", "port", "kafka_port", "registry_port", "data_dir")
    told = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return {**told, "settings": settings(args)}


def run(args: argparse.Namespace) -> int:
    # Brings Spark along; `--help` need not wait for it.
    from headrace.server.launch import LaunchOptions
    from headrace.server.run import end_soon, serve

    return end_soon(serve(LaunchOptions(**launch_options(args)), again=command_line))


def command_line(addresses: Mapping[str, str]) -> list[str]:
    """The command that starts this server again, on the ports that it has now."""
    told = [*sys.orig_argv]
    for option, part in _PORTS.items():
        # Kafka's address has no scheme, and may be a list if it is not ours.
        _, _, port = addresses.get(part, "").rpartition(":")
        if port.isdecimal():
            told += [option, port]
    return told
