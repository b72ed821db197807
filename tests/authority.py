"""A certificate authority of a test's own, and the stores that clients and servers keep them in."""

from __future__ import annotations

import datetime
import os
import ssl
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from headrace.kafka.java_home import find_java


@dataclass(frozen=True)
class Issued:
    """A certificate with its key and the certificates between it and the authority."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...] = ()

    def pem(self) -> str:
        return self.key_pem() + "".join(map(_pem, (self.certificate, *self.chain)))

    def key_pem(self, password: str | None = None) -> str:
        hidden: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            hidden = serialization.BestAvailableEncryption(password.encode())
        form = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(serialization.Encoding.PEM, form, hidden).decode()

    def pkcs12(self, password: str) -> bytes:
        hidden = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"me", self.key, self.certificate, self.chain, hidden
        )


class Authority:
    """It signs an authority between, which signs everything else."""

    def __init__(self, name: str = "authority") -> None:
        self._root = _issue(name, None)
        self._between = _issue(f"{name} between", self._root)

    def pem(self) -> str:
        return _pem(self._root.certificate)

    def issue(self, name: str, hosts: Sequence[str] = ("localhost",)) -> Issued:
        """For a client of that name, or a server of those names; localhost has an address."""
        made = _issue(name, self._between, hosts)
        return Issued(made.certificate, made.key, (self._between.certificate,))


def server_context(authority: Authority, folder: Path, host: str = "localhost") -> ssl.SSLContext:
    """Of a server that takes only clients with a certificate of the authority."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem())
    context.verify_mode = ssl.CERT_REQUIRED
    file = folder / "server.pem"
    file.write_text(authority.issue("server", [host]).pem())
    context.load_cert_chain(file)
    return context


def keytool(*arguments: str, **secrets: str) -> None:
    tool = find_java().executable.resolve().with_name("keytool")
    command = [str(tool), "-noprompt", *arguments]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **secrets})


def java_trust_store(file: Path, authority: Authority, password: str, kind: str = "JKS") -> Path:
    pem = file.with_suffix(".ca")
    pem.write_text(authority.pem())
    told = ["-importcert", "-alias", "ca", "-file", str(pem), "-keystore", str(file)]
    keytool(*told, "-storetype", kind, "-storepass:env", "P", P=password)
    return file


def java_key_store(
    file: Path, issued: Issued, password: str, key_password: str | None = None
) -> Path:
    between = file.with_suffix(".between")
    between.write_bytes(issued.pkcs12(password))
    told = ["-importkeystore", "-srckeystore", str(between), "-srcstoretype", "PKCS12"]
    told += ["-srcstorepass:env", "P", "-srcalias", "me", "-destkeystore", str(file)]
    told += ["-deststoretype", "JKS", "-deststorepass:env", "P", "-destkeypass:env", "K"]
    keytool(*told, P=password, K=key_password or password)
    between.unlink()
    return file


def _issue(name: str, by: Issued | None, hosts: Sequence[str] = ()) -> Issued:
    """Without hosts it is for an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    signs = not hosts
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=signs, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if by is not None:
        of = x509.AuthorityKeyIdentifier.from_issuer_public_key(by.key.public_key())
        builder = builder.add_extension(of, critical=False)
    if signs:
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = builder.add_extension(usage, critical=True)
    else:
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        if "localhost" in hosts:
            names.append(x509.IPAddress(IPv4Address("127.0.0.1")))
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Issued(builder.sign(by.key if by else key, hashes.SHA256()), key)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
