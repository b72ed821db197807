"""A table's rows in a local SQLite file: the last record of each key of one topic.

An SQLite file in write-ahead mode: one writer (who follows the topic) and any number of readers
do not disturb each other, rows and the offsets they stand for are committed together, and what
is held in memory does not grow with the table.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]

# Raised whenever files of before could not be read: they are then filled anew from the topic.
VERSION = 2
WRITER_CACHE_KIB = 32 * 1024
MAPPED_BYTES = 1 << 30  # of the file, that lookups read without a system call
# A deletion disappears from a compacted topic after a day: who was away longer may have missed it.
MAX_ABSENCE_SECONDS = 12 * 3600

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS positions (
    part INTEGER PRIMARY KEY, next INTEGER NOT NULL, low INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS records (
    key BLOB PRIMARY KEY, value BLOB NOT NULL, time INTEGER NOT NULL,
    part INTEGER NOT NULL, place INTEGER NOT NULL, headers TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_in_order ON records (part, key);
"""
_COLUMNS = "key, value, time, part, place, headers"
_GET = f"SELECT {_COLUMNS} FROM records WHERE key = ?"
_PUT = f"INSERT OR REPLACE INTO records ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"


class StoredRecord(NamedTuple):
    """A record of the store; `headers_of` reads its `headers`."""

    key: bytes
    value: bytes
    timestamp: int
    partition: int
    offset: int
    headers: str | None


class Update(NamedTuple):
    """A record of the topic on its way in; without a value it deletes its key."""

    key: bytes
    value: bytes | None
    timestamp: int
    partition: int
    offset: int
    headers: Headers


class RowStore:
    """The rows of one topic. `topic_id` tells it from another topic of the same name: what was
    stored for that one is dropped, and so is what has not been followed for too long."""

    def __init__(self, path: Path, topic_id: str) -> None:
        self._path = path
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._opening = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = self._open_writer()
        try:
            self._begin({"topic": topic_id, "version": str(VERSION)})
        except BaseException:  # whatever it is, the file is not left open
            self._writer.close()
            raise

    def _begin(self, facts: Mapping[str, str]) -> None:
        if not self._is_usable(facts):
            self._writer.close()
            remove_store(self._path)
            self._writer = self._open_writer()
            self._writer.executemany("INSERT INTO facts VALUES (?, ?)", list(facts.items()))
        self.touch()

    def _is_usable(self, facts: Mapping[str, str]) -> bool:
        found = dict(self._writer.execute("SELECT name, value FROM facts").fetchall())
        away = time.time() - float(found.pop("followed", "0"))
        return found == facts and away < MAX_ABSENCE_SECONDS

    # ------------------------------------------------------------------ reading

    def get(self, key: bytes) -> StoredRecord | None:
        row = self._reader().execute(_GET, (key,)).fetchone()
        return None if row is None else StoredRecord._make(row)

    def scan(self, low: bytes | None = None, high: bytes | None = None) -> Iterator[StoredRecord]:
        """The records with `low` <= key < `high`, as they are when it starts.

        As ksqlDB does: partition by partition, and in each by key.
        """
        limits = [("key >= ?", low), ("key < ?", high)]
        given = [(text, value) for text, value in limits if value is not None]
        where = f" WHERE {' AND '.join(t for t, _ in given)}" if given else ""
        # A connection of its own: rows are taken one by one, perhaps by several threads in turn.
        connection = self._connect()
        try:
            found = connection.execute(
                f"SELECT {_COLUMNS} FROM records{where} ORDER BY part, key", [v for _, v in given]
            )
            for row in found:
                yield StoredRecord._make(row)
        finally:
            connection.close()

    def positions(self) -> dict[int, int]:
        """By partition, the offset of the first record that is not in here yet."""
        return dict(self._reader().execute("SELECT part, next FROM positions").fetchall())

    # ------------------------------------------------------------------ writing

    def apply(self, updates: Iterable[Update], positions: Mapping[int, int]) -> None:
        """Applies updates in the topic's order, with the new positions, in one transaction."""
        last = {update.key: update for update in updates}
        # In key order: neighbours share pages, which is what loading a big table is about.
        kept = [
            (u.key, u.value, u.timestamp, u.partition, u.offset, _stored(u.headers))
            for _, u in sorted(last.items())
            if u.value is not None
        ]
        gone = [(u.key,) for u in last.values() if u.value is None]
        writer = self._writer
        writer.execute("BEGIN")
        try:
            writer.executemany(_PUT, kept)
            writer.executemany("DELETE FROM records WHERE key = ?", gone)
            writer.executemany(
                "INSERT INTO positions (part, next) VALUES (?, ?) "
                "ON CONFLICT (part) DO UPDATE SET next = excluded.next",
                list(positions.items()),
            )
            writer.execute("COMMIT")
        except BaseException:  # whatever it is, nothing is half written
            if writer.in_transaction:  # SQLite itself may have given up already
                writer.execute("ROLLBACK")
            raise

    def expire(self, lows: Mapping[int, int]) -> None:
        """Deletes records that the topic has deleted: those before its oldest offsets."""
        known = dict(self._writer.execute("SELECT part, low FROM positions").fetchall())
        for part, low in lows.items():
            if low > known.get(part, low):
                self._writer.execute(
                    "DELETE FROM records WHERE part = ? AND place < ?", (part, low)
                )
            if low > known.get(part, -1):
                self._writer.execute(
                    "INSERT INTO positions (part, next, low) VALUES (?, ?, ?) "
                    "ON CONFLICT (part) DO UPDATE SET low = excluded.low",
                    (part, low, low),
                )

    def touch(self) -> None:
        """Notes that the topic is being followed."""
        self._writer.execute("INSERT OR REPLACE INTO facts VALUES ('followed', ?)", (time.time(),))

    def close(self) -> None:
        with self._opening:
            for reader in self._readers:
                reader.close()
            self._readers.clear()
        self._writer.close()

    # ------------------------------------------------------------------ connections

    def _connect(self) -> sqlite3.Connection:
        # Autocommit: transactions are begun and ended in words.
        return sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)

    def _open_writer(self) -> sqlite3.Connection:
        try:
            return self._prepared_writer()
        except sqlite3.DatabaseError as e:
            if not is_damage(e):
                raise
            remove_store(self._path)  # the topic has everything
            return self._prepared_writer()

    def _prepared_writer(self) -> sqlite3.Connection:
        writer = self._connect()
        try:
            writer.execute("PRAGMA journal_mode = WAL")
            writer.execute("PRAGMA synchronous = NORMAL")
            writer.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
            writer.executescript(_SCHEMA)
        except BaseException:  # whatever it is, the file is not left open
            writer.close()
            raise
        return writer

    def _reader(self) -> sqlite3.Connection:
        reader: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if reader is None:
            with self._opening:
                reader = self._connect()
                reader.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
                self._readers.append(reader)
            self._local.reader = reader
        return reader


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is damaged, in contrast to a full disk and the like."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def remove_store(path: Path) -> None:
    """Deletes the files of a store that nobody has open."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _stored(headers: Headers) -> str | None:
    if not headers:
        return None
    return json.dumps([(k, None if v is None else b64encode(v).decode()) for k, v in headers])


def headers_of(record: StoredRecord) -> Sequence[tuple[str, bytes | None]]:
    if record.headers is None:
        return ()
    return [(k, None if v is None else b64decode(v)) for k, v in json.loads(record.headers)]
