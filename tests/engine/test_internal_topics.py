"""How the server's own topics are kept: in as many replicas as its settings say."""

from __future__ import annotations

from contextlib import suppress

import pytest

from headrace.engine.engine import Engine
from headrace.engine.environment import Environment
from headrace.engine.queries.processing_log import skipped_topic
from headrace.kafka.admin import TopicAdmin
from headrace.kafka.client import KafkaConnection, TopicExistsError
from headrace.model.settings import Settings

DEAD_LETTERS = "ksql.error.dead.letter.topic"


class Admin:
    """No topic exists, and none is made."""

    def __init__(self, made):
        self.create = made

    def exists(self, name):
        return False


@pytest.mark.parametrize(
    ("settings", "replicas", "in_sync"),
    [
        ({}, 1, "1"),
        (
            {
                "ksql.internal.topic.replicas": "3",
                "ksql.internal.topic.min.insync.replicas": "2",
            },
            3,
            "2",
        ),
    ],
)
def test_internal_topics_are_kept_as_settings_say(
    tmp_path, monkeypatch, settings, replicas, in_sync
):
    asked = []

    def made(spec):
        asked.append(spec)
        raise TopicExistsError(spec.name)

    monkeypatch.setattr(TopicAdmin, "ensure", lambda admin, spec: made(spec))
    env = Environment(
        settings=Settings(settings),
        kafka=KafkaConnection({"bootstrap.servers": "127.0.0.1:1"}, timeout=5),
        admin=Admin(made),
        registry=None,
        spark=None,
        state_dir=str(tmp_path),
        data_dir=tmp_path,
    )
    engine = Engine(env)
    for opened in (engine.log, engine.heartbeat):
        with suppress(TopicExistsError):
            opened.open()
    skipped_topic(env, Settings({DEAD_LETTERS: "skipped"}))
    engine._identity.release()
    assert [spec.name for spec in asked] == [
        "_headrace-default__command_topic",
        "_headrace-default__servers",
        "skipped",
    ]
    kept = {(spec.partitions, spec.replicas, spec.configs["min.insync.replicas"]) for spec in asked}
    assert kept == {(1, replicas, in_sync)}
