"""Stores of all kinds give the same certificates and the same key."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from cryptography import x509

from authority import Authority, Issued, java_key_store, java_trust_store
from headrace.kafka import key_stores
from headrace.kafka.key_stores import identity, trusted
from headrace.model.errors import HeadraceError


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def me(authority: Authority) -> Issued:
    return authority.issue("me")


def _key_store(location: Path, **more: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in more.items()}
    return {"ssl.keystore.location": str(location), **named}


def _shows(settings: dict[str, str], me: Issued) -> None:
    found = identity(settings)
    assert found is not None
    assert found.key == me.key_pem()
    chain = x509.load_pem_x509_certificates(found.chain.encode())
    assert chain == [me.certificate, *me.chain]


def test_none() -> None:
    assert trusted({}) is None
    assert identity({}) is None


def test_pem_files(tmp_path: Path, authority: Authority, me: Issued) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text(f"of the test\n{authority.pem()}")
    assert trusted({"ssl.truststore.location": str(ca)}) == authority.pem()
    own = tmp_path / "me.pem"
    own.write_text(me.pem())
    _shows(_key_store(own, ssl_keystore_type="PEM"), me)


def test_pem_in_settings(authority: Authority, me: Issued) -> None:
    assert trusted({"ssl.truststore.certificates": authority.pem()}) == authority.pem()
    given = {
        "ssl.keystore.certificate.chain": me.pem(),
        "ssl.keystore.key": me.key_pem("hunter2"),
        "ssl.key.password": "hunter2",
    }
    _shows(given, me)
    with pytest.raises(HeadraceError, match=r"ssl\.key\.password is wrong"):
        identity(given | {"ssl.key.password": "other"})
    with pytest.raises(HeadraceError, match=r"is encrypted: set ssl\.key\.password"):
        identity({name: value for name, value in given.items() if "password" not in name})


def test_pkcs12(tmp_path: Path, me: Issued) -> None:
    store = tmp_path / "me.p12"
    store.write_bytes(me.pkcs12("hunter2"))
    _shows(_key_store(store, ssl_keystore_password="hunter2"), me)
    with pytest.raises(HeadraceError, match=r"ssl\.keystore\.password is wrong, or") as caught:
        identity(_key_store(store, ssl_keystore_password="hunter3"))
    assert "hunter" not in caught.value.message


def test_only_the_chain_is_shown(tmp_path: Path, me: Issued) -> None:
    """A store may hold other certificates too."""
    other = Authority("other").issue("other")
    more = Issued(me.certificate, me.key, (other.certificate, *other.chain, *me.chain))
    store = tmp_path / "me.p12"
    store.write_bytes(more.pkcs12("hunter2"))
    _shows(_key_store(store, ssl_keystore_password="hunter2"), me)


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "JCEKS"])
def test_trust_stores_of_keytool(tmp_path: Path, authority: Authority, kind: str) -> None:
    store = java_trust_store(tmp_path / "trust", authority, "hunter2", kind)
    given = {"ssl.truststore.location": str(store), "ssl.truststore.password": "hunter2"}
    assert trusted(given) == authority.pem()
    with pytest.raises(HeadraceError, match=r"ssl\.truststore\.password is wrong") as caught:
        trusted(given | {"ssl.truststore.password": "hunter3"})
    assert "hunter" not in caught.value.message


@pytest.mark.heavy
def test_a_java_trust_store_needs_no_password(tmp_path: Path, authority: Authority) -> None:
    store = java_trust_store(tmp_path / "trust", authority, "hunter2")
    assert trusted({"ssl.truststore.location": str(store)}) == authority.pem()


@pytest.mark.heavy
@pytest.mark.parametrize("key_password", ["hunter2", "another1"])
def test_java_key_stores(tmp_path: Path, me: Issued, key_password: str) -> None:
    """A key may have a password of its own."""
    store = java_key_store(tmp_path / "me.jks", me, "hunter2", key_password)
    given = _key_store(store, ssl_keystore_password="hunter2", ssl_key_password=key_password)
    _shows(given, me)
    with pytest.raises(HeadraceError, match=r"ssl\.keystore\.password is wrong"):
        identity(given | {"ssl.keystore.password": "hunter3"})


@pytest.mark.heavy
def test_a_key_with_another_password(tmp_path: Path, me: Issued) -> None:
    store = java_key_store(tmp_path / "me.jks", me, "hunter2", "another1")
    with pytest.raises(HeadraceError, match=r"ssl\.key\.password, the password of its key, is"):
        identity(_key_store(store, ssl_keystore_password="hunter2"))


@pytest.mark.heavy
def test_nothing_is_left_behind(
    tmp_path: Path, me: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keytool's command line has no password, its file nobody else can read, and it is gone."""
    store = java_key_store(tmp_path / "me.jks", me, "hunter2")
    seen: list[list[str]] = []
    modes: list[int] = []
    run = key_stores._run

    def watched(command: list[str], *rest: object) -> str:
        said = run(command, *rest)  # type: ignore[arg-type]
        made = Path(command[command.index("-destkeystore") + 1])
        seen.append(command)
        modes.append(stat.S_IMODE(made.parent.stat().st_mode))
        return said

    monkeypatch.setattr(key_stores, "_run", watched)
    _shows(_key_store(store, ssl_keystore_password="hunter2"), me)
    (command,) = seen
    assert "hunter2" not in " ".join(command)
    assert modes == [0o700]
    assert not Path(command[command.index("-destkeystore") + 1]).parent.exists()


def test_a_store_that_was_replaced_is_read_again(
    tmp_path: Path, authority: Authority, me: Issued
) -> None:
    store = tmp_path / "me.p12"
    store.write_bytes(me.pkcs12("hunter2"))
    _shows(_key_store(store, ssl_keystore_password="hunter2"), me)
    other = authority.issue("other")
    store.write_bytes(other.pkcs12("hunter2"))
    os.utime(store, ns=(1, 1))
    _shows(_key_store(store, ssl_keystore_password="hunter2"), other)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, r"cannot be read: No such file"),
        (b"", r"neither a Java key store nor PKCS12 nor PEM"),
        (b"\x30\x82 nonsense", r"neither a Java key store nor PKCS12 nor PEM"),
        (b"-----BEGIN NOTHING-----", r"holds no certificate"),
    ],
)
def test_what_is_no_store(tmp_path: Path, content: bytes | None, reason: str) -> None:
    store = tmp_path / "store"
    if content is not None:
        store.write_bytes(content)
    with pytest.raises(HeadraceError, match=reason) as caught:
        trusted({"ssl.truststore.location": str(store)})
    assert str(store) in caught.value.message


def test_half_an_identity(tmp_path: Path, authority: Authority, me: Issued) -> None:
    store = tmp_path / "me.pem"
    store.write_text(authority.pem())
    with pytest.raises(HeadraceError, match="holds no private key"):
        identity(_key_store(store))
    store.write_text(me.key_pem())
    os.utime(store, ns=(1, 1))
    with pytest.raises(HeadraceError, match="holds no certificate"):
        identity(_key_store(store))


def test_two_stores_for_one_thing(authority: Authority) -> None:
    given = {"ssl.truststore.location": "x", "ssl.truststore.certificates": authority.pem()}
    with pytest.raises(HeadraceError, match="are set: set one of them"):
        trusted(given)
