"""Basic authentication, roles, and TLS."""

import shutil
import ssl
import subprocess

import httpx
import pytest

from fake_server import running
from headrace.cli.main import main
from headrace.client import Client, Unauthorized
from headrace.model.errors import HeadraceError
from headrace.server.auth import credentials_line, hash_password, read_users, verify
from headrace.server.settings import Access, Tls


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    path = tmp_path_factory.mktemp("auth") / "users.txt"
    lines = [
        "# people",
        credentials_line("reader", "r", ("read",)),
        credentials_line("writer", "w:ä", ("read", "write")),
    ]
    path.write_text("\n".join(lines))
    with running(access=Access(path)) as (_, url):
        yield url


def client(url, user=None, password=""):
    return Client(url, user=user, password=password)


@pytest.mark.parametrize(("user", "password"), [(None, ""), ("reader", "x"), ("nobody", "r")])
def test_strangers_are_refused(secured, user, password):
    with client(secured, user, password) as stranger:
        for call in (stranger.info, stranger.streams, lambda: stranger.pull("SELECT 1 FROM T;")):
            with pytest.raises(Unauthorized) as caught:
                call()
            assert caught.value.error_code == 40100
    answer = httpx.get(f"{secured}/info")
    assert answer.headers["www-authenticate"] == 'Basic realm="headrace"'
    assert httpx.get(f"{secured}/chc/live").status_code == 200


def test_broken_headers_are_refused(secured):
    for header in ("Basic", "Basic !", "Basic /w==", "Bearer x"):
        answer = httpx.get(f"{secured}/info", headers={"authorization": header})
        assert answer.status_code == 401


def test_readers_may_ask(secured):
    with client(secured, "reader", "r") as reader:
        assert reader.streams()
        assert reader.pull("SELECT * FROM T;")
        reader.execute("SHOW STREAMS; DESCRIBE S; EXPLAIN Q;")
        for change in ("CREATE STREAM X …;", "SHOW STREAMS; DROP STREAM S;", "${x} STREAM S;"):
            with pytest.raises(Unauthorized) as caught:
                reader.execute(change)
            assert caught.value.error_code == 40300
        with pytest.raises(Unauthorized):
            reader.insert("S", {"ID": 1})
    answer = httpx.post(f"{secured}/ksql/terminate", json={}, auth=("reader", "r"))
    assert answer.status_code == 403


def test_writers_may_do_everything(secured):
    with client(secured, "writer", "w:ä") as writer:
        assert writer.execute("CREATE STREAM X …;")
        writer.insert("S", {"ID": 1})


def test_passwords():
    hashed = hash_password("secret")
    assert verify("secret", hashed) and not verify("Secret", hashed)
    assert hashed != hash_password("secret")
    assert not verify("x", "nonsense") and not verify("x", "scrypt$!$!")


def test_broken_file(tmp_path):
    path = tmp_path / "users.txt"
    for line in ("alice", "alice:plain:read", f"alice:{hash_password('x')}:king"):
        path.write_text(line)
        with pytest.raises(HeadraceError, match="line 1"):
            read_users(path)
    with pytest.raises(HeadraceError, match="Cannot read"):
        read_users(tmp_path / "none")


def test_password_command(capsys, monkeypatch, tmp_path):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    assert main(["password", "alice", "--role", "write"]) == 0
    path = tmp_path / "users.txt"
    path.write_text(capsys.readouterr().out)
    alice = read_users(path)["alice"]
    assert verify("secret", alice.hash) and alice.roles == {"write"}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls_with_both_protocols(tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    outputs = ["-out", str(certificate), "-keyout", str(key)]
    subprocess.run([*command, *names, *outputs], check=True, capture_output=True)
    trust = ssl.create_default_context(cafile=str(certificate))
    with running(tls=Tls(certificate, key)) as (_, url):
        assert url.startswith("https://")
        for modern in (False, True):
            with httpx.Client(base_url=url, http2=modern, verify=trust) as http:
                answer = http.get("/info")
                assert answer.status_code == 200
                assert answer.http_version == ("HTTP/2" if modern else "HTTP/1.1")
        with Client(url, verify=str(certificate)) as own:
            assert own.info()
