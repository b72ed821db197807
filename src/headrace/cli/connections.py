"""Options by which commands reach Kafka, a schema registry and servers."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from headrace.cli.properties import read_properties
from headrace.client import Client
from headrace.kafka.client import KafkaConnection
from headrace.model.settings import SETTINGS, Settings, canonical, passes_through
from headrace.registry.client import HttpRegistry, RegistryClient

_REGISTRY = "ksql.schema.registry."


def add_kafka(parser: argparse.ArgumentParser, why: str) -> None:
    parser.add_argument("--kafka", metavar="HOST:PORT", help=why)
    add_registry(parser)
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="a server's properties: Kafka, schema registry, security",
    )


def add_registry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--schema-registry", metavar="URL", help="the registry that has the records' schemas"
    )


@dataclass(frozen=True)
class Connections:
    """Kafka and the registry, as far as options or the file of settings name them."""

    kafka: KafkaConnection | None
    registry: RegistryClient | None

    @staticmethod
    def of(args: argparse.Namespace) -> Connections:
        file = getattr(args, "config", None)
        given = read_properties(file) if file is not None else {}
        known = {k: v for k, v in given.items() if canonical(k) in SETTINGS or passes_through(k)}
        client = Settings(known).client()
        address = getattr(args, "kafka", None) or given.get("bootstrap.servers")
        url = args.schema_registry or given.get(f"{_REGISTRY}url")
        return Connections(
            KafkaConnection({**client, "bootstrap.servers": address}) if address else None,
            _registry(url, given) if url else None,
        )


def _registry(url: str, given: dict[str, str]) -> RegistryClient:
    own = {k.removeprefix(_REGISTRY): v for k, v in given.items() if k.startswith(_REGISTRY)}
    user_info = own.pop("basic.auth.user.info", None)
    own.pop("url", None)
    return HttpRegistry(url, user_info, own)


def client_of(url: str, user: str | None, *, password_variable: str, timeout: float) -> Client:
    """A client of a server; the password is in the environment, where nobody else sees it."""
    password = os.environ.get(password_variable, "")
    return Client(url, user=user, password=password, timeout=timeout)
