"""An ordinary evening of a server: five queries, a steady flow of records, people who look.

Two threads ask, one a pull query and the other a short push query, every one to two seconds each;
half of the push queries end at their LIMIT, the others are left while they run.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.client import Client
from scene import Scene, record

RECORDS_PER_SECOND = 600
USERS = 500
PATIENCE = 30.0

_STATEMENTS = """
CREATE STREAM VIEWS (ID STRING KEY, PAGE STRING, AMOUNT INT)
  WITH (KAFKA_TOPIC='views', VALUE_FORMAT='JSON');
CREATE TABLE PEOPLE (ID STRING PRIMARY KEY, TOWN STRING, AGE INT)
  WITH (KAFKA_TOPIC='people', VALUE_FORMAT='JSON');
CREATE STREAM LARGE AS SELECT * FROM VIEWS WHERE AMOUNT > 50;
CREATE TABLE PER_USER AS SELECT ID, COUNT(*) AS N, SUM(AMOUNT) AS TOTAL FROM VIEWS GROUP BY ID;
CREATE TABLE PER_VIEWED AS SELECT PAGE, COUNT(*) AS N FROM VIEWS
  WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY PAGE;
CREATE STREAM PLACED AS SELECT C.ID AS ID, PAGE, TOWN FROM VIEWS C JOIN PEOPLE P ON C.ID = P.ID;
CREATE STREAM SHOUTED AS SELECT ID, UCASE(PAGE) AS PAGE FROM LARGE;
"""
_PULLS = (
    "SELECT * FROM PER_USER WHERE ID = 'user-{user}';",
    "SELECT PAGE, N FROM PER_VIEWED WHERE PAGE = 'page-{page}';",
    "SELECT ID, N, UCASE(ID) AS SHOUTED FROM PER_USER WHERE ID = 'user-{user}';",
)
_PUSHES = (
    "SELECT * FROM VIEWS EMIT CHANGES",
    "SELECT ID, TOWN FROM PLACED WHERE TOWN = 'town-1' EMIT CHANGES",
    "SELECT ID, N FROM PER_USER EMIT CHANGES",
)


class OrdinaryUse:
    """The load on a server; `seed` says who asks what and when."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self._scene = scene
        self._seed = seed
        self._over = threading.Event()
        self.pulls = self.pushes = 0
        self.failures: list[str] = []

    def prepare(self) -> None:
        for topic in ("views", "people"):
            self._scene.topic(topic, partitions=2)
        self._scene.write(
            "people",
            *(record({"TOWN": f"town-{i % 7}", "AGE": i % 90}, f"user-{i}") for i in range(USERS)),
        )
        self._scene.sql(_STATEMENTS)
        self._scene.wait(self._first_rows, all)  # everybody finds queries that run

    def _first_rows(self) -> list[bool]:
        large = {"PAGE": "page-0", "AMOUNT": 99}
        self._scene.write("views", record(large, "user-1", at=int(time.time() * 1000)))
        topics = ("PER_USER", "PER_VIEWED", "PLACED", "SHOUTED")
        return [bool(self._scene.all(topic)) for topic in topics]

    def await_rounds(self, count: int) -> None:
        """Until so many more of each kind of question were answered."""
        pulls, pushes = self.pulls + count, self.pushes + count
        self._scene.wait(
            lambda: (self.pulls, self.pushes, self.failures),
            lambda seen: seen[0] >= pulls and seen[1] >= pushes,
            patience=180,
        )

    def clean_up(self) -> None:
        self._scene.sql(
            "".join(
                f"DROP {kind} {name} DELETE TOPIC;"
                for kind, name in (
                    ("STREAM", "SHOUTED"),
                    ("STREAM", "PLACED"),
                    ("TABLE", "PER_VIEWED"),
                    ("TABLE", "PER_USER"),
                    ("STREAM", "LARGE"),
                    ("TABLE", "PEOPLE"),
                    ("STREAM", "VIEWS"),
                )
            )
        )

    @contextmanager
    def going_on(self) -> Iterator[None]:
        kinds = (self._write, self._pull, self._push)
        threads = [
            threading.Thread(target=self._keep, args=(work, random.Random(f"{self._seed}/{i}")))
            for i, work in enumerate(kinds)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _keep(self, work: Callable[[Client, random.Random], None], choose: random.Random) -> None:
        with Client(self._scene.url, timeout=60) as client:
            while not self._over.is_set():
                try:
                    work(client, choose)
                except Exception as failure:
                    self.failures.append(f"{time.strftime('%H:%M:%S')} {failure!r}"[:500])
                    self._over.wait(1)

    def _write(self, client: Client, choose: random.Random) -> None:
        began = time.monotonic()
        now = int(time.time() * 1000)
        self._scene.write("views", *(_view(choose, now) for _ in range(RECORDS_PER_SECOND // 4)))
        self._over.wait(max(0.0, began + 0.25 - time.monotonic()))

    def _pull(self, client: Client, choose: random.Random) -> None:
        text = choose.choice(_PULLS)
        client.pull(text.format(user=choose.randrange(USERS), page=choose.randrange(20)))
        self.pulls += 1
        self._over.wait(choose.uniform(1, 2))

    def _push(self, client: Client, choose: random.Random) -> None:
        rows, text = choose.randrange(1, 20), choose.choice(_PUSHES)
        limit = f" LIMIT {rows}" if choose.random() < 0.5 else ""
        found = 0
        with client.stream(text + limit + ";") as stream:
            patience = threading.Timer(PATIENCE, self._scene.client.close_query, [stream.query_id])
            patience.start()
            for _ in stream:
                found += 1
                if found == rows:
                    break
            patience.cancel()
        assert found == rows, f"{found} rows instead of {rows} of {text}{limit}"
        self.pushes += 1
        self._over.wait(choose.uniform(1, 2))


def _view(choose: random.Random, now: int) -> dict[str, object]:
    value = {"PAGE": f"page-{choose.randrange(20)}", "AMOUNT": choose.randrange(100)}
    return record(value, f"user-{choose.randrange(USERS)}", at=now)
