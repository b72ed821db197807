"""Authentication and authorization: basic authentication against a file of users with roles.

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
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.model.entities import ErrorEntity
from headrace.model.errors import HeadraceError
from headrace.server.bodies import read
from headrace.server.error_responses import (
    FORBIDDEN,
    UNAUTHORIZED,
    ApiError,
    entity_of,
    error_response,
)
from headrace.server.logins import FailedLogins
from headrace.server.settings import EVERYONE, Access
from headrace.server.streams import Services
from headrace.server.thread_pool import Workers
from headrace.sql.ast import Effect
from headrace.sql.outline import outlines

READ, WRITE = "read", "write"
ROLES = (READ, WRITE)
ROLES_KEY = "headrace.roles"  # in the scope of an authenticated request

_COST, _BLOCK, _PARALLEL = 2**14, 8, 1
_REMEMBERED = 1000
_LONGEST_OPEN = 1000  # a pattern with several `*` takes its time for long paths


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


class Authentication:
    """Admits known users and records their rights. Paths that match `open_paths` are for all, those
    in `writing` only for users who may change something."""

    def __init__(
        self,
        app: ASGIApp,
        users: Mapping[str, User],
        access: Access,
        open_paths: re.Pattern[str],
        writing: Collection[str],
        workers: Workers,
    ) -> None:
        self.app = app
        self.users = users
        self.access = access
        self.open_paths = open_paths
        self.writing = writing
        self.workers = workers
        # Hashing is slow on purpose, so that what was right once is remembered; by a keyed hash.
        self._secret = os.urandom(32)
        self._known: OrderedDict[bytes, User] = OrderedDict()
        self._failed = FailedLogins()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self._is_open(scope["path"]):
            await self.app(scope, receive, send)
            return
        address = (scope.get("client") or ("",))[0]
        try:
            user = await self._user(Headers(scope=scope).get("authorization", ""), address)
        except ApiError as error:
            await self._refuse(scope, receive, send, entity_of(error))
            return
        if user is None:
            await self._refuse(scope, receive, send, ErrorEntity(UNAUTHORIZED, "Unauthorized"))
        elif not self._is_let_in(user):
            await self._refuse(scope, receive, send, ErrorEntity(FORBIDDEN, "Forbidden"))
        elif scope["path"] in self.writing and WRITE not in user.roles:
            await self._refuse(scope, receive, send, ErrorEntity(FORBIDDEN, NOT_ALLOWED))
        else:
            await self.app({**scope, ROLES_KEY: user.roles}, receive, send)

    def _is_open(self, path: str) -> bool:
        return len(path) <= _LONGEST_OPEN and self.open_paths.fullmatch(path) is not None

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
        asks = entity.error_code == UNAUTHORIZED
        headers = {"www-authenticate": f'Basic realm="{self.access.realm}"'} if asks else None
        await error_response(entity, headers)(scope, receive, send)

    async def _user(self, header: str, address: str) -> User | None:
        digest = hmac.digest(self._secret, header.encode(), "sha256")
        known = self._known.get(digest)
        if known is not None:
            return known
        name, password = _basic(header)
        if not name:
            return None
        self._failed.check(address, name)
        user = self.users.get(name)
        # An unknown name takes as long as a wrong password, so that names cannot be guessed.
        hashed = user.hash if user else "scrypt$AAAAAAAAAAAAAAAAAAAAAA==$"
        if not await self.workers.passwords.run(verify, password, hashed) or user is None:
            self._failed.note(address, name)
            return None
        self._failed.forget(address, name)
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


async def check_statements(scope: Scope, services: Services, text: str) -> None:
    """Refuses statements that change something to those who may only read, and what is too long to
    be read at all."""
    found = await read(services, outlines, text)
    roles = scope.get(ROLES_KEY)
    if roles is None or WRITE in roles:
        return
    if any(outline.effect is Effect.CHANGES for outline in found):
        raise ApiError(FORBIDDEN, NOT_ALLOWED)
