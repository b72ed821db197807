"""Engines on one command log, which is pretended, as are the topics; none of them runs queries."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from headrace.engine.engine import Engine
from headrace.engine.environment import Environment
from headrace.kafka.admin import Topic
from headrace.kafka.client import KafkaConnection, TopicExistsError, UnknownTopicError
from headrace.model.errors import HeadraceError
from headrace.model.requests import Request
from headrace.model.settings import Settings


class Log:
    """A command log that all engines of a test share. `meanwhile` happens before an append."""

    topic = "commands"

    def __init__(self):
        self.commands = []
        self.lock = threading.Lock()
        self.meanwhile = lambda: None

    def append(self, command):
        happens, self.meanwhile = self.meanwhile, lambda: None
        happens()
        with self.lock:
            done = replace(command, sequence=len(self.commands))
            self.commands.append(done)
            return done

    def follow(self, start, stop):
        while not stop.wait(0.005):
            while start < len(self.commands):
                yield self.commands[start]
                start += 1

    def end(self):
        return len(self.commands)


class Topics:
    def __init__(self):
        self.found = {"orders": Topic("orders", (1,))}
        self.deleted = []

    def topics(self, include_internal=False):
        found = dict(self.found)
        time.sleep(0.001)  # in which others make theirs
        return found

    def exists(self, name):
        return name in self.found

    def describe(self, name):
        if name not in self.found:
            raise UnknownTopicError(f"Topic '{name}' does not exist in Kafka.")
        return self.found[name]

    def create(self, spec):
        if spec.name in self.found:
            raise TopicExistsError(spec.name)
        self.found[spec.name] = Topic(spec.name, (1,) * spec.partitions)

    def delete(self, name):
        self.deleted.append(name)
        del self.found[name]

    def begin_offsets(self, name):
        return {0: 0}

    end_offsets = begin_offsets

    def group_positions(self, group, topics=None):
        return {}


class Others:
    """A heartbeat that knows of another server, and of none that runs queries."""

    def holds(self):
        return False

    def holding(self):
        return None

    def others(self):
        return ["another"]

    def await_applied(self, sequence, timeout):
        return True

    def send_now(self):
        pass


class Service:
    def __init__(self, directory, names="ab", **settings):
        self.log = Log()
        self.topics = Topics()
        self.engines = []
        self._directory = directory
        self._settings = Settings(settings)
        for name in names:
            self.start(name)

    def start(self, name):
        """One more engine, which replays the log as it stands."""
        env = Environment(
            settings=self._settings,
            kafka=KafkaConnection({"bootstrap.servers": "127.0.0.1:1"}, timeout=5),
            admin=self.topics,
            registry=None,
            spark=None,
            state_dir=str(self._directory / "state"),
            data_dir=self._directory / name,
        )
        engine = Engine(env, log=self.log, heartbeat=Others())
        engine._following.open(0)
        self.engines.append(engine)
        return engine

    def close(self):
        for engine in self.engines:
            engine._following.close()
            engine._identity.release()

    def counted(self):
        """Of each command, whether it counts."""
        last, told = -1, []
        for command in self.log.commands:
            told.append(command.counts(last))
            last = command.sequence if told[-1] else last
        return told

    def settled(self):
        """The catalogs, once all engines have read the log."""
        deadline = time.monotonic() + 5
        while any(e.commands.position < self.log.end() for e in self.engines):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return [e.catalog for e in self.engines]


ORDERS = (
    "CREATE STREAM orders (id INT KEY, n INT) WITH (kafka_topic='orders', value_format='JSON');"
)
COPY = "CREATE STREAM copy AS SELECT * FROM orders;"


def run(engine, text):
    try:
        (entity,) = engine.execute(Request(text))
    except HeadraceError as e:
        return str(e)
    return entity.to_json().get("commandStatus", entity.to_json())["message"]
