"""Checkpoints whose newest files a power cut has torn, and what becomes of them."""

from __future__ import annotations

import json
import zipfile

import pytest

from headrace.spark.runtime.torn_checkpoints import TornCheckpointError, local_path, mend

OFFSETS = 'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":%d}}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
WHOLE_CHANGELOG = b"LZ4Block\x25abcdefghijkl" + b"LZ4Block\x15" + bytes(12)


@pytest.fixture
def checkpoint(tmp_path):
    """A query of five batches, all of them finished, with state in two partitions."""
    path = tmp_path / "CTAS_A_1"
    for log in ("offsets", "commits", "sources/0", "state/0/0", "state/0/1", "state/0/_metadata"):
        (path / log).mkdir(parents=True)
    (path / "metadata").write_text(json.dumps({"id": "4711"}))
    (path / "sources/0/0").write_text('\0v1\n{"orders":{"0":0}}')
    (path / "state/0/_metadata/metadata").write_text("v1\n{}")
    for batch in range(5):
        (path / "offsets" / str(batch)).write_text(OFFSETS % batch)
        (path / "commits" / str(batch)).write_text(COMMIT)
        for partition in "01":
            changes = path / "state/0" / partition / f"{batch + 1}.changelog"
            changes.write_bytes(WHOLE_CHANGELOG)
    return path


def listed(path, log):
    return sorted(int(file.name) for file in (path / log).iterdir() if file.name.isdigit())


def unchanged(path):
    return listed(path, "offsets") == listed(path, "commits") == [0, 1, 2, 3, 4]


def test_a_whole_one_is_left_alone(checkpoint):
    mend(str(checkpoint))
    mend(f"file:{checkpoint}", lambda spark_id: 5)
    assert unchanged(checkpoint)


def test_one_that_is_not_there_or_not_here():
    mend("/no/such/directory")
    mend("hdfs://somewhere/state/CSAS_A_1")
    assert local_path("s3a://bucket/state") is None


TORN = {"empty": "", "half a line": OFFSETS[:20], "a line short": OFFSETS.rpartition("\n")[0]}


@pytest.mark.parametrize("content", TORN.values(), ids=TORN)
def test_a_batch_whose_plan_is_torn_is_planned_anew(checkpoint, content):
    (checkpoint / "commits/4").unlink()
    (checkpoint / "offsets/4").write_text(content)
    (checkpoint / "offsets/.4.crc").write_bytes(b"crc")
    mend(str(checkpoint), lambda spark_id: {"4711": 4}[spark_id])
    assert listed(checkpoint, "offsets") == listed(checkpoint, "commits") == [0, 1, 2, 3]
    assert not (checkpoint / "offsets/.4.crc").exists()


def test_a_batch_that_was_written_exactly_once_is_not_planned_anew(checkpoint):
    (checkpoint / "commits/4").unlink()
    (checkpoint / "offsets/4").write_text("")
    with pytest.raises(TornCheckpointError, match="TERMINATE the query and create it again"):
        mend(str(checkpoint), lambda spark_id: 5)
    mend(str(checkpoint))  # at least once may write again
    assert listed(checkpoint, "offsets") == [0, 1, 2, 3]


def test_a_finished_batch_whose_plan_is_torn_is_planned_anew(checkpoint):
    (checkpoint / "offsets/4").write_text("")
    mend(str(checkpoint))
    assert listed(checkpoint, "offsets") == listed(checkpoint, "commits") == [0, 1, 2, 3]


def test_what_a_batch_left_that_is_planned_anew_is_no_state_of_the_new_one(checkpoint):
    """A snapshot of the old one would be taken for what the new one has read."""
    (checkpoint / "state/0/0/5.zip").write_bytes(b"a snapshot")
    (checkpoint / "offsets/4").write_text("")
    mend(str(checkpoint))
    left = {file.name for file in (checkpoint / "state").glob("0/[01]/*")}
    assert left == {f"{version}.changelog" for version in range(1, 5)}


def test_a_batch_is_not_planned_anew_if_nobody_knows_whether_it_was_written(checkpoint):
    (checkpoint / "offsets/4").write_text("")
    (checkpoint / "metadata").write_text("")
    with pytest.raises(TornCheckpointError, match="are not known"):
        mend(str(checkpoint), lambda spark_id: 0)


@pytest.mark.parametrize("content", ["", "v1", "v1\n{", "v1\n"])
def test_a_batch_whose_end_is_torn_runs_again(checkpoint, content):
    (checkpoint / "commits/4").write_text(content)
    mend(str(checkpoint), lambda spark_id: 5)
    assert listed(checkpoint, "offsets") == [0, 1, 2, 3, 4]
    assert listed(checkpoint, "commits") == [0, 1, 2, 3]


def test_the_first_batch(checkpoint):
    for batch in range(1, 5):
        (checkpoint / "offsets" / str(batch)).unlink()
        (checkpoint / "commits" / str(batch)).unlink()
    (checkpoint / "commits/0").write_text("")
    (checkpoint / "offsets/0").write_text("")
    (checkpoint / "sources/0/0").write_text("\0")
    (checkpoint / "state/0/_metadata/metadata").write_text("")
    mend(str(checkpoint), lambda spark_id: 0)
    assert listed(checkpoint, "offsets") == listed(checkpoint, "commits") == []
    assert not (checkpoint / "sources/0/0").exists()
    assert not (checkpoint / "state").exists()


def test_a_lost_id_is_replaced_if_no_batch_bears_it(checkpoint):
    (checkpoint / "metadata").write_text("")
    mend(str(checkpoint), lambda spark_id: 0)
    assert not (checkpoint / "metadata").exists()
    (checkpoint / "metadata").write_text("{")
    (checkpoint / "commits/4").unlink()
    with pytest.raises(TornCheckpointError):
        mend(str(checkpoint), lambda spark_id: 0)
    mend(str(checkpoint))
    assert not (checkpoint / "metadata").exists()


@pytest.mark.parametrize("content", [b"", WHOLE_CHANGELOG[:-5]])
def test_torn_state_is_computed_again(checkpoint, content):
    (checkpoint / "state/0/1/5.changelog").write_bytes(content)
    mend(str(checkpoint), lambda spark_id: 5)
    assert listed(checkpoint, "commits") == [0, 1, 2, 3]
    assert listed(checkpoint, "offsets") == [0, 1, 2, 3, 4]
    mend(str(checkpoint), lambda spark_id: 5)  # what is to be overwritten may be torn
    assert listed(checkpoint, "commits") == [0, 1, 2, 3]


def test_state_of_two_batches_is_more_than_can_be_mended(checkpoint):
    for version in (4, 5):
        (checkpoint / f"state/0/1/{version}.changelog").write_bytes(b"")
    with pytest.raises(TornCheckpointError, match="more than one version"):
        mend(str(checkpoint))
    assert unchanged(checkpoint)


def test_a_torn_snapshot_is_not_needed_while_the_changes_are_there(checkpoint):
    with zipfile.ZipFile(checkpoint / "state/0/0/3.zip", "w") as whole:
        whole.writestr("files", "")
    (checkpoint / "state/0/0/5.zip").write_bytes(b"PK")
    mend(str(checkpoint))
    assert [file.name for file in (checkpoint / "state/0/0").glob("*.zip")] == ["3.zip"]
    assert unchanged(checkpoint)
    (checkpoint / "state/0/1/5.zip").write_bytes(b"")
    (checkpoint / "state/0/1/2.changelog").unlink()
    with pytest.raises(TornCheckpointError, match=r"5\.zip is not whole"):
        mend(str(checkpoint))


def test_what_spark_says_about_the_state_cannot_be_guessed(checkpoint):
    (checkpoint / "state/0/_metadata/metadata").write_text("")
    with pytest.raises(TornCheckpointError, match="is empty"):
        mend(str(checkpoint))
