"""Options by which commands reach Kafka, a schema registry and servers."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from headrace.cli.properties import read_properties
from headrace.client import Client
from headrace.kafka.client import KafkaConnection
from headrace.model.settings import (
    Settings,
    canonical,
    declared,
    passes_through,
)
from headrace.registry.client import HttpRegistry, RegistryClient


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
        settings = Settings(
            {k: v for k, v in given.items() if declared(canonical(k)) or passes_through(k)}
        )
        address = getattr(args, "kafka", None) or settings.text("bootstrap.servers")
        url = registry_url(settings, args.schema_registry)
        return Connections(
            KafkaConnection({**settings.client(), "bootstrap.servers": address})
            if address
            else None,
            HttpRegistry.of(url, settings) if url else None,
        )


def registry_url(settings: Settings, given: str | None) -> str | None:
    """What an option says, else what the settings do."""
    return given or settings.text("ksql.schema.registry.url")


def client_of(url: str, user: str | None, *, password_variable: str, timeout: float) -> Client:
    """A client of a server; the password is in the environment, where nobody else sees it."""
    password = os.environ.get(password_variable, "")
    return Client(url, user=user, password=password, timeout=timeout)
