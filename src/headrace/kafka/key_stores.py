"""Certificates and keys of PEM files, PKCS12 files and Java key stores, all as PEM.

The settings are the Java client's (`ssl.truststore.location`, …). Java's own format is read by the
keytool of the Java that is here anyway: it makes a PKCS12 file of it, in a directory of this user
that is gone a moment later. PEM in hand, neither librdkafka nor Spark's executors need the files.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import Certificate

from headrace.kafka.java_home import find_java
from headrace.model.errors import HeadraceError

Settings = Mapping[str, str]

# What this module reads.
NAMES = frozenset(
    {
        *(f"ssl.truststore.{name}" for name in ("location", "type", "password", "certificates")),
        *(f"ssl.keystore.{name}" for name in ("location", "type", "password")),
        *("ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.key.password"),
    }
)
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)
# How Java's own formats begin: JKS and JCEKS.
_JAVA_FORMATS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_KEYTOOL_SECONDS = 60


@dataclass(frozen=True)
class Identity:
    """Who a client is: its certificate with its chain, and its private key, not encrypted."""

    chain: str
    key: str


@dataclass(frozen=True)
class _Content:
    certificates: str = ""
    key: str = ""


def trusted(settings: Settings) -> str | None:
    """The certificates that a client trusts; None if the settings name none."""
    _check_one(settings, "ssl.truststore.certificates", "ssl.truststore.location")
    if (inline := settings.get("ssl.truststore.certificates")) is not None:
        found = _certificates_of(inline)
        told = "ssl.truststore.certificates"
    elif location := settings.get("ssl.truststore.location"):
        password = settings.get("ssl.truststore.password") or None
        found = _read("ssl.truststore", location, password, None).certificates
        told = f"ssl.truststore.location {location}"
    else:
        return None
    if not found:
        raise HeadraceError(f"{told} holds no certificate.")
    return found


def identity(settings: Settings) -> Identity | None:
    """The certificate and key that a client shows; None if the settings name none."""
    _check_one(settings, "ssl.keystore.key", "ssl.keystore.location")
    key_password = settings.get("ssl.key.password") or None
    if inline := settings.get("ssl.keystore.key"):
        told = "ssl.keystore.key"
        chain = _certificates_of(settings.get("ssl.keystore.certificate.chain", ""))
        content = _Content(chain, _key_of(inline, key_password, told))
    elif location := settings.get("ssl.keystore.location"):
        told = f"ssl.keystore.location {location}"
        password = settings.get("ssl.keystore.password") or None
        content = _read("ssl.keystore", location, password, key_password)
    else:
        return None
    if not content.key or not content.certificates:
        missing = "private key" if content.certificates else "certificate"
        raise HeadraceError(f"{told} holds no {missing}.")
    return Identity(content.certificates, content.key)


def _check_one(settings: Settings, *names: str) -> None:
    if all(settings.get(name) for name in names):
        raise HeadraceError(f"Both {' and '.join(names)} are set: set one of them.")


def _read(setting: str, location: str, password: str | None, key_password: str | None) -> _Content:
    try:
        # The date: a file that was replaced is read again.
        changed = Path(location).stat().st_mtime_ns
        return _read_once(setting, location, changed, password, key_password)
    except OSError as failure:
        raise HeadraceError(
            f"{setting}.location {location} cannot be read: {failure.strerror}."
        ) from failure


@lru_cache(maxsize=16)
def _read_once(
    setting: str, location: str, changed: int, password: str | None, key_password: str | None
) -> _Content:
    data = Path(location).read_bytes()
    told = f"{setting}.location {location}"
    if b"-----BEGIN" in data:
        text = data.decode(errors="replace")
        keys = _key_of(text, key_password or password, told) if _KEY.search(text) else ""
        return _Content(_certificates_of(text), keys)
    if data.startswith(_JAVA_FORMATS):
        password, data = _as_pkcs12(setting, location, password, key_password)
    secret = None if password is None else password.encode()
    try:
        store = pkcs12.load_pkcs12(data, secret)
    except (ValueError, UnsupportedAlgorithm):
        raise HeadraceError(
            f"{told} cannot be read: {setting}.password is wrong, or it is neither a Java key "
            "store nor PKCS12 nor PEM."
        ) from None
    others = [each.certificate for each in store.additional_certs]
    if store.key is None or store.cert is None:
        found = others if store.cert is None else [store.cert.certificate, *others]
        return _Content("".join(map(_certificate_text, found)))
    chain = _chain(store.cert.certificate, others)
    return _Content("".join(map(_certificate_text, chain)), _key_text(store.key))


def _chain(certificate: Certificate, others: list[Certificate]) -> list[Certificate]:
    """A certificate and those that vouch for it, in order: a store may hold more."""
    chain = [certificate]
    while found := [c for c in others if c.subject == chain[-1].issuer and c not in chain]:
        chain.append(found[0])
    return chain


def _as_pkcs12(
    setting: str, location: str, password: str | None, key_password: str | None
) -> tuple[str, bytes]:
    """A Java key store as PKCS12, with the password that it has there."""
    keytool = find_java().executable.resolve().with_name("keytool")
    chosen = secrets.token_urlsafe(24)
    # Everybody on the machine can read a command line; a process's variables are its user's alone.
    secret = {"HEADRACE_NEW_PASSWORD": chosen}
    with tempfile.TemporaryDirectory(prefix="headrace-store-") as folder:  # 0700
        made = Path(folder) / "store.p12"
        command = [str(keytool), "-importkeystore", "-noprompt", "-srckeystore", location]
        command += ["-destkeystore", str(made), "-deststoretype", "PKCS12"]
        command += ["-deststorepass:env", "HEADRACE_NEW_PASSWORD"]
        answers = ""
        if password is not None:
            command += ["-srcstorepass:env", "HEADRACE_STORE_PASSWORD"]
            secret["HEADRACE_STORE_PASSWORD"] = password
        else:
            answers = "\n"  # keytool asks for it: certificates can be read without
        answers += f"{key_password or password or ''}\n"  # what it asks for if a key has its own
        said = _run(command, secret, answers)
        if not made.exists():
            reason = _reason(said, setting)
            raise HeadraceError(f"{setting}.location {location} cannot be read: {reason}.")
        return chosen, made.read_bytes()


def _run(command: list[str], secret: Mapping[str, str], answers: str) -> str:
    try:
        answer = subprocess.run(
            command,
            env={**os.environ, **secret},
            input=answers,
            capture_output=True,
            text=True,
            timeout=_KEYTOOL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        return str(failure)
    return answer.stdout + answer.stderr


def _reason(said: str, setting: str) -> str:
    if "password was incorrect" in said:
        return f"{setting}.password is wrong, or it is damaged"
    if "Enter key password" in said or "Cannot recover key" in said:
        return "ssl.key.password, the password of its key, is wrong or missing"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if "rror" in line), "keytool says nothing").rstrip(".")


def _certificates_of(text: str) -> str:
    return "".join(f"{block}\n" for block in _CERTIFICATE.findall(text))


def _key_of(text: str, password: str | None, told: str) -> str:
    block = _KEY.search(text)
    if block is None:
        raise HeadraceError(f"{told} holds no private key.")
    encrypted = "ENCRYPTED" in block[0]
    if encrypted and password is None:
        raise HeadraceError(f"{told} is encrypted: set ssl.key.password.")
    secret = password.encode() if encrypted and password is not None else None
    try:
        return _key_text(serialization.load_pem_private_key(block[0].encode(), secret))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = "ssl.key.password is wrong" if encrypted else "it is damaged"
        raise HeadraceError(f"{told}: its private key cannot be read, {wrong}.") from None


def _key_text(key: PrivateKeyTypes) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,  # the only one that Java reads
        serialization.NoEncryption(),
    ).decode()


def _certificate_text(certificate: Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
