"""Settings of a server, by ksqlDB's names: where it listens, who is let in, how much it takes."""

import shutil
import ssl
import subprocess

import httpx
import pytest

from fake_server import running
from headrace.model.errors import HeadraceError
from headrace.model.settings import Settings
from headrace.server.auth import credentials_line
from headrace.server.settings import Access, Limits, Listener, ServerSettings, Tls


def chosen(**settings):
    return ServerSettings.of(Settings(named(settings)), "127.0.0.1", 0)


def named(settings):
    return {name.replace("__", "."): value for name, value in settings.items()}


def test_defaults():
    assert chosen() == ServerSettings(port=0)


def test_limits():
    limits = chosen(
        ksql__max__push__queries=3,
        ksql__query__pull__max__concurrent__requests=4,
        ksql__server__max__request__bytes=5,
        ksql__server__max__waiting__requests=6,
        ksql__query__push__max__duration__ms=1500,
        ksql__query__max__rows=7,
        ksql__server__max__prints=8,
        ksql__server__max__insert__streams=9,
        ksql__server__max__waiting__assertions=10,
        ksql__query__pull__max__qps=11,
        ksql__query__pull__max__hourly__bandwidth__megabytes=12,
        ksql__query__push__v2__max__hourly__bandwidth__megabytes=13,
        ksql__idle__connection__timeout__seconds=14,
    ).limits
    assert limits == Limits(
        body_bytes=5,
        push_queries=3,
        pull_queries=4,
        prints=8,
        insert_streams=9,
        assertions=10,
        waiting_requests=6,
        query_seconds=1.5,
        query_rows=7,
        pulls_per_second=11,
        pull_megabytes=12,
        push_megabytes=13,
        idle_seconds=14,
    )


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("http://0.0.0.0:8088", Listener("0.0.0.0", 8088, False, True)),
        ("https://localhost:1", Listener("localhost", 1, True, True)),
        ("http://[::1]:2", Listener("::1", 2, False, True)),
    ],
)
def test_listeners(text, listener):
    assert Listener.of(Settings({"listeners": text})) == listener


@pytest.mark.parametrize("text", ["", "x", "http://a", "ftp://a:1", "http://a:b", "http://:1"])
def test_wrong_listeners(text):
    with pytest.raises(HeadraceError, match="listeners"):
        Listener.of(Settings({"listeners": text}))


def test_one_listener_only():
    with pytest.raises(HeadraceError, match="listeners names 2 addresses: it takes one"):
        Listener.of(Settings({"listeners": "http://a:1,http://b:2"}))


def test_who_is_let_in(tmp_path):
    path = tmp_path / "users"
    lines = [
        credentials_line("reader", "r", ("read",)),
        credentials_line("writer", "w", ("write",)),
    ]
    path.write_text("\n".join(lines))
    settings = chosen(
        authentication__method="BASIC",
        authentication__realm="Here",
        authentication__roles="admin, write",
        authentication__skip__paths="/info,/is_valid*",
        authentication__credentials__file=path,
    )
    roles = frozenset({"admin", "write"})
    assert settings.access == Access(path, "Here", roles, ("/info", "/is_valid*"))
    with running(access=settings.access) as (_, url), httpx.Client(base_url=url) as http:
        refused = http.get("/status")
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == 'Basic realm="Here"'
        assert http.get("/info").status_code == 200
        assert http.get("/is_valid_property/auto.offset.reset").status_code == 200
        assert http.get("/status", auth=("writer", "w")).status_code == 200
        forbidden = http.get("/status", auth=("reader", "r"))
        assert (forbidden.status_code, forbidden.json()["error_code"]) == (403, 40300)


def test_basic_needs_users():
    with pytest.raises(HeadraceError, match=r"needs authentication\.credentials\.file"):
        chosen(authentication__method="BASIC")


def test_pages_that_may_call():
    assert chosen(access__control__allow__origin="http://a, http://b").origins == (
        "http://a",
        "http://b",
    )


def test_https_needs_a_certificate(tmp_path):
    with pytest.raises(HeadraceError, match="needs a certificate"):
        chosen(listeners="https://a:1")
    store = tmp_path / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(HeadraceError, match="is no PEM file"):
        chosen(listeners="https://a:1", ssl__keystore__location=store)
    with pytest.raises(HeadraceError, match="Cannot read"):
        chosen(listeners="https://a:1", listeners__ssl__certificate=tmp_path / "nothing")


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_key_store_in_pem_and_clients_with_certificates(tmp_path):
    ca, ca_key = tmp_path / "ca.pem", tmp_path / "ca.key"
    certificate, key, store = (tmp_path / name for name in ("cert.pem", "cert.key", "store.pem"))
    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1")
    openssl(*new, "-subj", "/CN=Authority", "-out", ca, "-keyout", ca_key)
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    signed = ("-CA", ca, "-CAkey", ca_key, "-addext", "basicConstraints=critical,CA:FALSE")
    openssl(*new, *names, *signed, "-out", certificate, "-keyout", key)
    store.write_text(key.read_text() + certificate.read_text())
    tls = chosen(
        listeners="https://127.0.0.1:8088",
        ssl__keystore__location=store,
        ssl__truststore__location=ca,
        ssl__client__authentication="REQUIRED",
    ).tls
    assert tls == Tls(store, store, None, ca)
    known = ssl.create_default_context(cafile=str(ca))
    known.load_cert_chain(certificate, key)
    stranger = ssl.create_default_context(cafile=str(ca))
    with running(tls=tls) as (_, url):
        with httpx.Client(base_url=url, http2=True, verify=known) as http:
            answer = http.get("/info")
            assert (answer.status_code, answer.http_version) == (200, "HTTP/2")
        with httpx.Client(base_url=url, verify=stranger) as http, pytest.raises(httpx.HTTPError):
            http.get("/info")
