"""Tables that are followed, on a real broker."""

from __future__ import annotations

import threading
import time
import uuid

import pytest

from headrace.engine.tables import follower as tailing
from headrace.engine.tables.follower import Followed, TableTails
from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import NewRecord, RecordWriter
from headrace.model.errors import HeadraceError

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def kafka(server):
    return KafkaConnection({"bootstrap.servers": server.kafka})


@pytest.fixture(scope="module")
def admin(kafka):
    return TopicAdmin(kafka)


@pytest.fixture(scope="module")
def write(kafka):
    with RecordWriter(kafka) as writer:

        def write(topic: str, **rows: str | None) -> None:
            writer.write_all(
                [
                    NewRecord(topic, k.encode(), None if v is None else v.encode())
                    for k, v in rows.items()
                ]
            )

        yield write


@pytest.fixture
def topic(admin):
    name = f"tail-{uuid.uuid4().hex[:8]}"
    admin.create(TopicSpec(name, 2, 1, {"cleanup.policy": "compact"}))
    return name


@pytest.fixture
def tails(kafka, admin, tmp_path):
    tails = TableTails(kafka, admin, tmp_path)
    yield tails
    tails.close()


def rows(tails: TableTails, followed: Followed) -> dict[str, str]:
    tail = tails.follow(followed)
    tails.await_fresh(tail, 0)
    return {r.key.decode(): r.value.decode() for r in tail.store.scan()}


def test_everything_written_before_is_there(tails, topic, write):
    write(topic, a="1", b="2", c="3")
    assert rows(tails, Followed(topic, topic)) == {"a": "1", "b": "2", "c": "3"}
    for i in range(20):
        write(topic, a=str(i), c=None)
        assert rows(tails, Followed(topic, topic)) == {"a": str(i), "b": "2"}


def test_it_goes_on_after_a_restart(kafka, admin, tmp_path, topic, write):
    first = TableTails(kafka, admin, tmp_path)
    write(topic, a="1", b="2")
    assert rows(first, Followed(topic, topic)) == {"a": "1", "b": "2"}
    first.close()
    write(topic, b=None, c="3")
    second = TableTails(kafka, admin, tmp_path)
    try:
        tail = second.follow(Followed(topic, topic))
        assert sum(tail.reached.values()) == 2  # nothing is read twice
        assert rows(second, Followed(topic, topic)) == {"a": "1", "c": "3"}
    finally:
        second.close()


def test_tables_share_a_topic(tails, topic, write):
    write(topic, a="1", b="2")

    def upper(key: bytes, value: bytes | None) -> bytes | None:
        return None if value == b"2" else key.upper()

    plain, changed = Followed("plain", topic), Followed("changed", topic, "upper", upper)
    assert rows(tails, plain) == {"a": "1", "b": "2"}
    assert rows(tails, changed) == {"A": "1"}
    write(topic, c="3")
    assert rows(tails, plain) == {"a": "1", "b": "2", "c": "3"}
    assert rows(tails, changed) == {"A": "1", "C": "3"}
    tails.forget("plain")
    write(topic, d="4")
    assert rows(tails, changed) == {"A": "1", "C": "3", "D": "4"}
    assert rows(tails, plain) == {"a": "1", "b": "2", "c": "3", "d": "4"}


def test_another_topic_of_the_same_name(kafka, admin, tmp_path, topic, write):
    first = TableTails(kafka, admin, tmp_path)
    write(topic, a="1")
    assert rows(first, Followed(topic, topic)) == {"a": "1"}
    first.close()
    admin.delete(topic)
    deadline = time.monotonic() + 30
    while admin.exists(topic):
        assert time.monotonic() < deadline
    admin.create(TopicSpec(topic, 2, 1))
    write(topic, b="2")
    second = TableTails(kafka, admin, tmp_path)
    try:
        assert rows(second, Followed(topic, topic)) == {"b": "2"}
    finally:
        second.close()


def test_a_table_that_nobody_asks_about_rests(tails, topic, write, monkeypatch):
    write(topic, a="1")
    followed = Followed(topic, topic)
    assert rows(tails, followed) == {"a": "1"}
    monkeypatch.setattr(tailing, "IDLE_SECONDS", -1.0)
    monkeypatch.setattr(tailing, "CARE_SECONDS", 0.0)
    deadline = time.monotonic() + 30
    while tails.get(topic) is not None:
        assert time.monotonic() < deadline
    monkeypatch.undo()
    write(topic, b="2")
    assert rows(tails, followed) == {"a": "1", "b": "2"}


# What SQLite answers where the disk is full, and where nothing can be written any more; and how
# that is over.
FAULTS = {
    "full": ("PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1000000000", "full"),
    "read only": ("PRAGMA query_only = ON", "PRAGMA query_only = OFF", "readonly"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_rows_come_back_by_themselves_when_the_disk_does(tails, topic, write, fault, monkeypatch):
    """The thread that follows tables survives, says what is wrong, and tries again."""
    monkeypatch.setattr(tailing, "CARE_SECONDS", 0.0)
    monkeypatch.setattr(tailing, "LONGEST_RETRY_SECONDS", 1.0)
    begins, ends, reason = FAULTS[fault]
    followed = Followed(topic, topic)
    write(topic, a="1")
    assert rows(tails, followed) == {"a": "1"}
    assert tails.trouble is None
    writer = tails.follow(followed).store._writer
    writer.execute(begins)
    write(topic, **{f"k{i}": "x" * 1000 for i in range(100)})
    with pytest.raises(HeadraceError, match=f"cannot be stored.*{reason}.*as soon as"):
        rows(tails, followed)
    trouble = tails.trouble
    assert trouble is not None
    assert reason in trouble.reason
    assert time.time() - 60 < trouble.since <= time.time()

    writer.execute(ends)
    deadline = time.monotonic() + 30
    while tails.trouble is not None:  # nobody has to ask
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(rows(tails, followed)) == 101
    write(topic, b="2")
    assert rows(tails, followed)["b"] == "2"


def test_a_table_that_cannot_be_kept_is_told_in_a_sentence(kafka, admin, tmp_path, topic, write):
    """Its directory cannot be made: no internal error, and it works when it can."""
    write(topic, a="1")
    (tmp_path / "tables").write_text("in the way")
    tails = TableTails(kafka, admin, tmp_path / "tables")
    try:
        with pytest.raises(HeadraceError, match="cannot be stored"):
            rows(tails, Followed(topic, topic))
        assert tails.trouble is not None
        (tmp_path / "tables").unlink()
        assert rows(tails, Followed(topic, topic)) == {"a": "1"}
        assert tails.trouble is None
    finally:
        tails.close()


def test_the_thread_outlives_what_nobody_thought_of(tails, topic, write, monkeypatch):
    write(topic, a="1")
    assert rows(tails, Followed(topic, topic)) == {"a": "1"}
    raised = threading.Event()

    def broken(self):
        raised.set()
        raise RuntimeError("nobody thought of this")

    with monkeypatch.context() as patch:
        patch.setattr(tailing, "CARE_SECONDS", 0.0)
        patch.setattr(TableTails, "_care", broken)
        assert raised.wait(30)
    write(topic, b="2")
    assert rows(tails, Followed(topic, topic)) == {"a": "1", "b": "2"}
    assert tails.trouble is None
