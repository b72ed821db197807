"""A server among secured ones: a broker with SASL_SSL, a registry and a Connect worker behind TLS
and a login. All works there, whoever is refused knows why, and no secret is seen anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import javaproperties
import pytest

from authority import Authority, java_trust_store, server_context
from connect_worker import connect_worker
from headrace.kafka.client import KafkaConnection
from headrace.kafka.ports import free_port
from headrace.registry.core import SchemaRegistry
from headrace.registry.log import TopicLog
from scene import Scene, record
from secured_broker import (
    CLIENT_SECRET,
    KEY_PASSWORD,
    PASSWORD,
    PLAIN,
    SCRAM_512,
    STORE_PASSWORD,
    TOKENS,
    UNSECURED,
    USER,
    SecuredBroker,
    secured_broker,
)
from secured_registry import SecuredRegistry, basic, secured_registry
from server_process import ServerProcess, eventually

pytestmark = pytest.mark.heavy

LOGIN, TOKEN = "r3gistry-secret", "t0ken-secret"
# As they are in files, commands and answers; of the password a part that is never escaped.
SECRETS = ("w;rd=1", STORE_PASSWORD, KEY_PASSWORD, CLIENT_SECRET, LOGIN, TOKEN, "PRIVATE KEY")
assert SECRETS[0] in PASSWORD


@dataclass
class Place:
    """The secured services, and the settings by which a server reaches them."""

    broker: SecuredBroker
    registry: SecuredRegistry
    connect: dict[str, str]
    folder: Path

    def settings(self, mechanism: str, registry: dict[str, str]) -> dict[str, str]:
        """As a ksqlDB's properties file has them: the stores of Kafka serve the others too."""
        return {
            **self.broker.settings(mechanism),
            "ksql.schema.registry.url": self.registry.url,
            **{f"ksql.schema.registry.{name}": value for name, value in registry.items()},
            **self.connect,
        }

    @contextmanager
    def server(self, settings: dict[str, str]) -> Iterator[tuple[ServerProcess, Scene]]:
        ports = (free_port(), free_port(), free_port())
        config = javaproperties.dumps(settings)
        process = ServerProcess(self.folder / "data", ports, config=config)
        process.kafka = self.broker.inside  # for the test's own hands
        try:
            scene = process.scene()
            try:
                yield process, scene
            finally:
                scene.close()
            assert process.stop() == 0, process.told()
        finally:
            process.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("secured")
    with secured_broker(folder) as broker:
        context = server_context(broker.authority, folder)
        schemas = SchemaRegistry(TopicLog(KafkaConnection(broker.settings(PLAIN))))
        with (
            secured_registry(schemas, context) as registry,
            connect_worker(context, basic(USER, LOGIN)) as worker,
        ):
            registry.logins = {basic(USER, LOGIN), f"Bearer {TOKEN}"}
            login = {"ksql.connect.basic.auth.user.info": f"{USER}:{LOGIN}"}
            yield Place(broker, registry, {**worker.settings, **login}, folder)


BASIC = {
    "basic.auth.credentials.source": "USER_INFO",
    "basic.auth.user.info": f"{USER}:{LOGIN}",
}
BEARER = {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": TOKEN}


SOURCE = (
    "CREATE STREAM IF NOT EXISTS orders (id INT KEY, item STRING, amount DOUBLE) "
    "WITH (kafka_topic='orders', partitions=1, format='AVRO');"
)
QUERY = (
    "CREATE STREAM IF NOT EXISTS large AS SELECT id, item, amount FROM orders WHERE amount > 10;"
)


class ProcessList(threading.Thread):
    """Looks at the command lines of all processes below this one, all the time; keeps those with a
    secret."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.found: set[str] = set()
        self.programs: set[str] = set()
        self.looks = 0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.05):
            self.looks += 1
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    told = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    ours = _below(int(file.parent.name), os.getpid())
                except OSError:
                    continue
                self.programs |= {told.partition(" ")[0].rpartition("/")[2]} if ours else set()
                if ours and _secrets_in(told):
                    self.found.add(told)


def _below(process: int, ancestor: int) -> bool:
    while process > 1 and process != ancestor:
        stat = Path(f"/proc/{process}/stat").read_text()
        process = int(stat.rpartition(")")[2].split()[1])
    return process == ancestor


def test_everything_works(place: Place) -> None:
    processes = ProcessList()
    processes.start()
    with place.server(place.settings(SCRAM_512, BASIC)) as (process, scene):
        scene.sql(SOURCE)
        large = scene.create(QUERY)
        scene.create(
            "CREATE STREAM once AS SELECT id, amount * 2 AS twice FROM orders;",
            processing__guarantee="exactly_once_v2",
        )
        scene.create(
            "CREATE TABLE spending AS SELECT item, SUM(amount) AS total FROM orders GROUP BY item;"
        )
        for values in ("1, 'cable', 9.5", "2, 'screen', 310.25", "3, 'cable', 20.0"):
            scene.sql(f"INSERT INTO orders (id, item, amount) VALUES ({values});")

        assert scene.push("SELECT * FROM large EMIT CHANGES LIMIT 2;", 2) == [
            (2, "screen", 310.25),
            (3, "cable", 20.0),
        ]
        assert scene.push("SELECT twice FROM once EMIT CHANGES LIMIT 1;", 1) == [(19.0,)]
        scene.wait(
            lambda: scene.pull("SELECT * FROM spending WHERE item = 'cable';"),
            lambda rows: rows == [("cable", 29.5)],
        )
        assert len(scene.pull("SELECT * FROM large;")) == 2
        assert "cable" in scene.headrace("-e", "PRINT 'orders' FROM BEGINNING LIMIT 1;").stdout
        # The processing log, which a Spark worker writes.
        scene.write("orders", record(b"no Avro"))
        assert scene.log(large, 1)[0].detail["errorMessage"]
        assert scene.sql("SHOW CONNECTORS;")[0]["connectors"] == []

        answers = [scene.sql(text) for text in ("SHOW PROPERTIES;", "SHOW QUERIES;")]
        answers += [scene.sql(f"EXPLAIN {large};"), scene.sql("DESCRIBE large EXTENDED;")]
        answers.append(httpx.get(f"{scene.url}/healthcheck").json())
        assert _secrets_in(str(answers)) == set()
        shown = {p["name"]: p["value"] for p in answers[0][0]["properties"]}
        assert shown["sasl.jaas.config"] == "[hidden]"
        assert shown["security.protocol"] == "SASL_SSL"
        for topic in scene.admin.topics():
            kept = [(r.key, r.value, r.headers) for r in scene.all(topic)]
            assert _secrets_in(str(kept)) == set(), topic
        assert _secrets_in(process.told()) == set()
    processes.done.set()
    processes.join()
    assert processes.looks > 100
    assert processes.programs >= {"java", "keytool"}
    assert processes.found == set()
    for file in (place.folder / "data").rglob("*"):
        if file.is_file() and file.name != "server.properties":
            assert _secrets_in(file.read_text(errors="replace")) == set(), file


def _secrets_in(text: str) -> set[str]:
    return {secret for secret in SECRETS if secret in text}


@pytest.mark.parametrize(
    ("mechanism", "registry"),
    [(TOKENS, BEARER), (PLAIN, BASIC), (UNSECURED, BEARER)],
    ids=["tokens", "plain", "unsecured tokens"],
)
def test_the_same_queries_with_other_logins(
    place: Place, mechanism: str, registry: dict[str, str]
) -> None:
    """They go on where the last server left them."""
    with place.server(place.settings(mechanism, registry)) as (_, scene):
        scene.sql(SOURCE + QUERY)
        before = len(scene.all("LARGE"))
        scene.sql("INSERT INTO orders (id, item, amount) VALUES (4, 'desk', 500);")
        scene.records("LARGE", before + 1)
        told = scene.push(f"SELECT item FROM large EMIT CHANGES LIMIT {before + 1};", before + 1)
        assert told[-1] == ("desk",)


def test_what_is_refused_later(place: Place) -> None:
    """Health names who refuses us and why; it is well again without a restart."""
    with place.server(place.settings(SCRAM_512, BEARER)) as (_, scene):
        scene.sql(SOURCE + QUERY)
        logins, place.registry.logins = place.registry.logins, set()
        told = _unwell(scene, "schemaRegistry")
        assert told.startswith(f"The schema registry at {place.registry.url} refuses the request")
        refusal = scene.refused("CREATE STREAM a WITH (kafka_topic='orders', format='AVRO');")
        assert f"The schema registry at {place.registry.url} refuses" in refusal
        place.registry.logins = logins
        place.broker.set_password("another")
        try:
            told = _unwell(scene, "kafka")
            assert told.startswith(f"Kafka at {place.broker.servers} refuses the login: ")
        finally:
            place.broker.set_password(PASSWORD)
        eventually(lambda: _health(scene)["isHealthy"])
        before = len(scene.all("LARGE"))
        scene.sql("INSERT INTO orders (id, item, amount) VALUES (5, 'lamp', 50);")
        scene.records("LARGE", before + 1)


def _health(scene: Scene) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{scene.url}/healthcheck").json()
    return found


def _unwell(scene: Scene, part: str) -> str:
    eventually(lambda: not _health(scene)["details"][part]["isHealthy"], 60)
    return str(_health(scene)["details"][part]["reason"])


@pytest.mark.parametrize("wrong", ["password", "authority", "store", "registry", "login string"])
def test_a_start_that_is_refused(place: Place, wrong: str, tmp_path: Path) -> None:
    """In one sentence, soon, and before Spark is started."""
    settings = place.settings(SCRAM_512, BASIC)
    match wrong:
        case "password":
            settings |= place.broker.settings(SCRAM_512, password="hunter2")
            told = f"Kafka at {place.broker.servers} refuses the login: "
        case "authority":
            store = java_trust_store(tmp_path / "other.jks", Authority("other"), STORE_PASSWORD)
            settings["ssl.truststore.location"] = str(store)
            told = f"Kafka at {place.broker.servers} cannot be reached over TLS: "
        case "store":
            settings["ssl.truststore.password"] = "hunter2"
            told = "cannot be read: ssl.truststore.password is wrong"
        case "registry":
            settings["ksql.schema.registry.ssl.keystore.password"] = "hunter2"
            told = "ksql.schema.registry.*: ssl.keystore.location "
        case _:
            settings["sasl.jaas.config"] = "required username='ann' password='hunter2';"
            told = "sasl.jaas.config cannot be read: "
    file = tmp_path / "server.properties"
    file.write_text(javaproperties.dumps(settings))
    command = [sys.executable, "-m", "headrace.cli.main", "start", "--config", str(file)]
    command += ["--data-dir", str(tmp_path / "data"), "--port", str(free_port())]
    began = time.monotonic()
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert time.monotonic() - began < 30
    assert answer.returncode != 0
    assert told in answer.stderr
    assert "Starting Spark" not in answer.stderr
    assert "Traceback" not in answer.stderr
    assert "hunter2" not in answer.stderr + answer.stdout
    assert _secrets_in(answer.stderr + answer.stdout) == set()
