"""What a power cut leaves of a checkpoint's newest files: nothing, or a part. It is mended before
Spark reads it, which would fail for ever.

Files are on the disk before they count (`spark/runtime/durable`). So only the newest can be torn,
and only by a disk that lies, or in a checkpoint of an earlier version. Each is let go, and the
query goes on from the one before it: Spark plans or runs the last micro-batch again.

With exactly-once, a batch that has written must not be planned anew: other records would get its
number, and be taken for written.
"""

from __future__ import annotations

import json
import logging
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from headrace.model.errors import HeadraceError

LOG = logging.getLogger(__name__)

# The last block of a finished file of Spark's LZ4 streams is empty: its sizes and checksum are 0.
_LZ4_MAGIC, _LZ4_END = b"LZ4Block", 12
# Directories of what Spark says about the state beside it.
_ABOUT_STATE = {"_metadata", "_stateSchema"}


class TornCheckpointError(HeadraceError):
    """A checkpoint that cannot be mended without losing or repeating something."""


# By Spark's id of a query, up to which batch its transactions are committed.
Written = Callable[[str], int]


def local_path(path: str) -> Path | None:
    """A path of Hadoop's on a file system of this machine, if it is there."""
    bare = path.removeprefix("file://").removeprefix("file:")
    return Path(bare) if bare.startswith("/") else None


def mend(checkpoint: str, written: Written | None = None) -> None:
    """Lets go of what is torn. `written` is of a query that writes exactly once. Elsewhere than on
    local file systems there is nothing to mend."""
    path = local_path(checkpoint)
    if path is not None and path.is_dir():
        _Checkpoint(path, written).mend()


class _Checkpoint:
    def __init__(self, path: Path, written: Written | None) -> None:
        self._path = path
        self._written = written

    def mend(self) -> None:
        for source in self._path.glob("sources/*/0"):
            if not _is_whole_log(source):
                _remove(source, "where the query starts is in the command log")
        self._mend_commits()
        self._mend_offsets()
        self._mend_metadata()
        self._mend_state()

    def _entries(self, log: str) -> list[Path]:
        """A log's entries, oldest first."""
        found = [file for file in (self._path / log).glob("[0-9]*") if file.name.isdigit()]
        return sorted(found, key=lambda file: int(file.name))

    def _last(self, log: str) -> int:
        entries = self._entries(log)
        return int(entries[-1].name) if entries else -1

    def _mend_commits(self) -> None:
        entries = self._entries("commits")
        if entries and not _is_whole_log(entries[-1]):
            _remove(entries[-1], "its batch runs again")

    def _mend_offsets(self) -> None:
        entries = self._entries("offsets")
        if not entries or _is_whole_log(entries[-1], entries[-2] if entries[1:] else None):
            return
        batch = int(entries[-1].name)
        if self._written is not None:
            query_id = self._query_id()
            if query_id is None or self._written(query_id) > batch:
                raise self._error("the records of the last batch, which it wrote, are not known")
        _remove(entries[-1], "its batch is planned anew")
        commit = self._path / "commits" / str(batch)
        if commit.exists():
            _remove(commit, "its batch runs again")
        self._forget_state_after(batch)

    def _forget_state_after(self, batch: int) -> None:
        """What a batch that is planned anew has left: it will read other records, and a snapshot
        of before would be read for what they come to."""
        for file in _files(self._path / "state"):
            if file.suffix in (".changelog", ".zip") and int(file.stem) > batch:
                _remove(file, "its batch is planned anew")

    def _query_id(self) -> str | None:
        try:
            return str(json.loads((self._path / "metadata").read_bytes())["id"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _mend_metadata(self) -> None:
        """Spark's id of the query; transactions bear it."""
        metadata = self._path / "metadata"
        if not metadata.exists() or self._query_id() is not None:
            return
        unfinished = self._last("offsets") > self._last("commits")
        if self._written is not None and unfinished:
            raise self._error("whether the last batch was written is not known")
        _remove(metadata, "the query gets another id")

    def _mend_state(self) -> None:
        last = self._last("commits")
        if last < 0:
            if any(file.stat().st_size == 0 for file in _files(self._path / "state")):
                LOG.warning("%s is torn: there is no state yet", self._path / "state")
                shutil.rmtree(self._path / "state")
            return
        for file in _files(self._path / "state"):
            if not _ABOUT_STATE.isdisjoint(file.parts) and file.stat().st_size == 0:
                raise self._error(f"{file} is empty")
        self._mend_snapshots(last + 1)
        if any(not _is_whole_changelog(file) for file in self._changelogs(last + 1)):
            before = [file for file in self._changelogs(last) if not _is_whole_changelog(file)]
            if before or self._last("offsets") > last:
                raise self._error("more than one version of its state is damaged")
            _remove(self._path / "commits" / str(last), "its state is computed again")

    def _changelogs(self, version: int) -> Iterator[Path]:
        return (self._path / "state").glob(f"**/{version}.changelog")

    def _mend_snapshots(self, newest: int) -> None:
        """A snapshot is only faster than the changes since the one before it."""
        for file in (self._path / "state").glob("**/*.zip"):
            if zipfile.is_zipfile(file):
                continue
            version = int(file.stem)
            earlier = [int(z.stem) for z in file.parent.glob("*.zip") if int(z.stem) < version]
            needed = range(max(earlier, default=0) + 1, min(version, newest) + 1)
            if not all((file.parent / f"{v}.changelog").exists() for v in needed):
                raise self._error(f"{file} is not whole")
            _remove(file, "the changes before it are read instead")

    def _error(self, reason: str) -> TornCheckpointError:
        return TornCheckpointError(
            f"The query's checkpoint in {self._path} is damaged, as by a power cut: {reason}. "
            "TERMINATE the query and create it again; its topics stay."
        )


def _remove(file: Path, consequence: str) -> None:
    LOG.warning("%s is torn, as by a power cut: %s", file, consequence)
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    file.unlink()


def _is_whole_log(file: Path, before: Path | None = None) -> bool:
    """A version, and then JSON or a dash in each line; as many lines as the one before it has."""
    try:
        # Kafka's source begins its own with a zero byte.
        version, *lines = file.read_text().lstrip("\0").splitlines()
        for line in lines:
            if line != "-":
                json.loads(line)
    except ValueError:
        return False
    least = len(before.read_text().splitlines()) - 1 if before is not None else 1
    return version.startswith("v") and len(lines) >= least


def _is_whole_changelog(file: Path) -> bool:
    with file.open("rb") as opened:
        begin = opened.read(len(_LZ4_MAGIC))
        if not begin:
            return False
        if begin != _LZ4_MAGIC:
            return True  # of another codec: Spark will tell
        opened.seek(-min(file.stat().st_size, _LZ4_END), 2)
        return opened.read() == bytes(_LZ4_END)


def _files(directory: Path) -> Iterator[Path]:
    return (file for file in directory.glob("**/*") if file.is_file() and file.name[0] != ".")
