"""A lock that lets one process at a time apply migrations: a custom type on the server.

Registering a type is the one change that a server makes atomically and that leaves no topic
behind. The type's only field tells who holds the lock.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from headrace.client import Client, ClientError, RequestFailed
from headrace.model.errors import HeadraceError


@contextmanager
def only_applier(client: Client, stream: str) -> Iterator[None]:
    """Holds the lock of a project; says who has it if it is taken."""
    name = stream.strip("`").upper() + "_LOCK"
    try:
        client.execute(f"CREATE TYPE {name} AS STRUCT<`{_myself()}` BOOLEAN>;")
    except RequestFailed as error:
        if "already registered" not in str(error):
            raise HeadraceError(f"Failed to lock the migrations metadata: {error}") from None
        raise HeadraceError(
            f"Another apply is under way: {_holder(client, name)}. Nothing was applied.\n"
            f"Should it have died, release its lock with: DROP TYPE {name};"
        ) from None
    try:
        yield
    finally:
        with suppress(ClientError):  # what was applied, or why not, is told either way
            client.execute(f"DROP TYPE IF EXISTS {name};")


def _myself() -> str:
    who = f"{getpass.getuser()} at {socket.gethostname()}, process {os.getpid()}"
    return f"{who}, since {datetime.now(UTC):%F %T} UTC".replace("`", "")


def _holder(client: Client, name: str) -> str:
    with suppress(ClientError, LookupError):
        types = client.execute("SHOW TYPES;")[0]["types"]
        return str(types[name]["fields"][0]["name"])
    return "by someone unknown"
