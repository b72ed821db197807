"""Who may do what: basic authentication against a file of users, each with roles.

A line of the file is `name:hash:roles`; `headrace password` makes one. The hash is scrypt's, so
that a stolen file is of little use. Role `read` may ask, role `write` may do everything.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.model.entities import ErrorEntity
from headrace.model.errors import HeadraceError
from headrace.server.failures import FORBIDDEN, UNAUTHORIZED, ApiError, error_response
from headrace.server.settings import EVERYONE, Access
from headrace.server.workers import Workers
from headrace.sql.parser import split
from headrace.sql.tokens import tokenize

READ, WRITE = "read", "write"
ROLES = (READ, WRITE)
ROLES_KEY = "headrace.roles"  # in the scope of an authenticated request

_READING = frozenset({"SELECT", "PRINT", "SHOW", "LIST", "DESCRIBE", "EXPLAIN", "ASSERT"})
_SESSION = frozenset({"SET", "UNSET", "DEFINE", "UNDEFINE"})
_COST, _BLOCK, _PARALLEL = 2**14, 8, 1
_REMEMBERED = 1000


@dataclass(frozen=True)
class User:
    name: str
    hash: str
    roles: frozenset[str]


def hash_password(password: str, salt: bytes | None = None) -> str:
    salt = os.urandom(16) if salt is None else salt
    digest = hashlib.scrypt(password.encode(), salt=salt, n=_COST, r=_BLOCK, p=_PARALLEL)
    return f"scrypt${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"


def verify(password: str, hashed: str) -> bool:
    try:
        _, salt, _ = hashed.split("$")
        expected = hash_password(password, base64.b64decode(salt, validate=True))
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(expected, hashed)


def credentials_line(name: str, password: str, roles: tuple[str, ...]) -> str:
    return f"{name}:{hash_password(password)}:{','.join(roles)}"


def read_users(path: Path) -> dict[str, User]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise HeadraceError(f"Cannot read the credentials file {path}: {error.strerror}") from None
    users = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, rest = line.strip().partition(":")
        hashed, _, roles = rest.partition(":")
        chosen = frozenset(role.strip() for role in roles.split(","))
        if not name or not hashed.startswith("scrypt$") or not chosen <= set(ROLES):
            raise HeadraceError(
                f"{path}, line {number}: expected name:hash:roles, as `headrace password` prints"
            )
        users[name] = User(name, hashed, chosen)
    return users


class Door(Protocol):
    """What is to be known of an endpoint here."""

    @property
    def path(self) -> str: ...

    @property
    def writes(self) -> bool: ...

    @property
    def open(self) -> bool: ...


@dataclass(frozen=True)
class Doors:
    """Which paths are open to all, and which themselves change something."""

    open: re.Pattern[str]
    writing: frozenset[str]

    @staticmethod
    def of(endpoints: Iterable[Door], patterns: Iterable[str] = ()) -> Doors:
        endpoints = tuple(endpoints)
        free = [re.escape(e.path) for e in endpoints if e.open]
        free += [re.escape(pattern).replace(r"\*", ".*") for pattern in patterns]
        return Doors(re.compile("|".join(free)), frozenset(e.path for e in endpoints if e.writes))


class Authentication:
    """Lets only known users pass, and notes what they may do."""

    def __init__(
        self,
        app: ASGIApp,
        users: Mapping[str, User],
        access: Access,
        doors: Doors,
        workers: Workers,
    ) -> None:
        self.app = app
        self.users = users
        self.access = access
        self.doors = doors
        self.workers = workers
        # Hashing is slow on purpose, so that what was right once is remembered; by a keyed hash.
        self._secret = os.urandom(32)
        self._known: OrderedDict[bytes, User] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self._is_open(scope["path"]):
            await self.app(scope, receive, send)
            return
        user = await self._user(Headers(scope=scope).get("authorization", ""))
        if user is None:
            await self._refuse(scope, receive, send, ErrorEntity(UNAUTHORIZED, "Unauthorized"))
        elif not self._is_let_in(user):
            await self._refuse(scope, receive, send, ErrorEntity(FORBIDDEN, "Forbidden"))
        elif scope["path"] in self.doors.writing and WRITE not in user.roles:
            await self._refuse(scope, receive, send, ErrorEntity(FORBIDDEN, NOT_ALLOWED))
        else:
            await self.app({**scope, ROLES_KEY: user.roles}, receive, send)

    def _is_open(self, path: str) -> bool:
        return self.doors.open.fullmatch(path) is not None

    def _is_let_in(self, user: User) -> bool:
        roles = self.access.roles
        return bool(roles & {EVERYONE, "**"} or roles & user.roles)

    async def _refuse(
        self, scope: Scope, receive: Receive, send: Send, entity: ErrorEntity
    ) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": entity.message})
            return
        headers = {"www-authenticate": f'Basic realm="{self.access.realm}"'}
        await error_response(entity, headers)(scope, receive, send)

    async def _user(self, header: str) -> User | None:
        digest = hmac.digest(self._secret, header.encode(), "sha256")
        known = self._known.get(digest)
        if known is not None:
            return known
        name, password = _basic(header)
        user = self.users.get(name)
        # An unknown name takes as long as a wrong password, so that names cannot be guessed.
        hashed = user.hash if user else "scrypt$AAAAAAAAAAAAAAAAAAAAAA==$"
        if not await self.workers.status.run(verify, password, hashed) or user is None:
            return None
        self._known[digest] = user
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return user


def _basic(header: str) -> tuple[str, str]:
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        name, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (ValueError, binascii.Error):
        return "", ""
    return name, password


NOT_ALLOWED = "You are not allowed to change anything on this server."


def check_statements(scope: Scope, text: str) -> None:
    """Refuses statements that change something to those who may only read."""
    roles = scope.get(ROLES_KEY)
    if roles is None or WRITE in roles:
        return
    for statement in split(text):
        if tokenize(statement.text).tokens[0].kind not in _READING | _SESSION:
            raise ApiError(FORBIDDEN, NOT_ALLOWED)
