"""The newest files of queries' checkpoints are torn, as by a power cut; the queries go on from the
ones before them, and their outputs are complete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from headrace.spark.runtime.durable import FILE_MANAGER
from scene import Scene, record

pytestmark = pytest.mark.heavy

COUNT = 30
KEYS = 5
# By query: its guarantee, the log whose newest file is torn, and how many bytes of that are left.
TORN = {
    "A": ("at_least_once", "offsets", 0),
    "B": ("at_least_once", "commits", 4),
    "C": ("at_least_once", "state", 40),
    "D": ("exactly_once_v2", "offsets", 30),
    "E": ("exactly_once_v2", "commits", 0),
    "F": ("exactly_once_v2", "state", 0),
}


def newest(checkpoint: Path, log: str) -> Path:
    pattern = "**/[0-9]*.changelog" if log == "state" else "[0-9]*"
    return max((checkpoint / log).glob(pattern), key=lambda f: int(f.name.partition(".")[0]))


def tear(checkpoint: Path, guarantee: str, log: str, keep: int) -> Path:
    file = newest(checkpoint, log)
    if log == "offsets" and guarantee == "exactly_once_v2":
        # Whatever has run was synced before: what is torn is the plan of the batch after it.
        planned = file.with_name(str(int(file.name) + 1))
        planned.write_bytes(file.read_bytes())
        file = planned
    file.write_bytes(file.read_bytes()[:keep])
    return file


def test_the_newest_files_are_torn(scene: Scene, server):
    scene.topic("torn", 2)
    scene.sql(
        "CREATE STREAM torn (k STRING KEY, n INT, word STRING) "
        "WITH (kafka_topic='torn', value_format='JSON');"
    )
    queries = {
        name: scene.create(
            f"CREATE TABLE torn_{name} AS "
            "SELECT k, COUNT(*) AS c, MAX(n) AS n FROM torn GROUP BY k;",
            processing__guarantee=guarantee,
        )
        for name, (guarantee, _, _) in TORN.items()
    }

    def write(numbers: range) -> None:
        scene.write("torn", *(record({"N": n, "WORD": "w"}, key=f"k{n % KEYS}") for n in numbers))

    def await_counts(total: int) -> None:
        expected = {f"k{k}".encode(): total // KEYS for k in range(KEYS)}
        for name in TORN:
            scene.wait(lambda: counts(scene, f"TORN_{name}"), lambda seen: seen == expected)  # noqa: B023

    write(range(COUNT))
    await_counts(COUNT)
    for query in queries.values():
        scene.drained(query, "torn")
    scene.sql("".join(f"PAUSE {query};" for query in queries.values()))
    state = Path(server.engine.env.state_dir) / "default_"
    files = {name: tear(state / queries[name], *how) for name, how in TORN.items()}
    write(range(COUNT, 2 * COUNT))
    scene.sql("".join(f"RESUME {query};" for query in queries.values()))
    await_counts(2 * COUNT)
    for name, file in files.items():
        assert file.stat().st_size > TORN[name][2], f"{file} is still torn"
    for name, (guarantee, _, _) in TORN.items():
        if guarantee == "exactly_once_v2":
            written = [(r.key, r.value) for r in scene._reader.read(f"TORN_{name}")]
            assert len(written) == len(set(written)), f"TORN_{name} has a count twice"


def test_exactly_once_does_not_plan_anew_what_it_has_written(scene: Scene, server):
    """The disk has lied: other records would get the batch's number, and be taken for written."""
    scene.topic("lied", 2)
    scene.sql(
        "CREATE STREAM lied (k STRING KEY, n INT, word STRING) "
        "WITH (kafka_topic='lied', value_format='JSON');"
    )
    scene.write("lied", *(record({"N": n}, key=f"k{n % KEYS}") for n in range(COUNT)))
    with scene.query(
        "CREATE STREAM lied_to AS SELECT * FROM lied;", processing__guarantee="exactly_once_v2"
    ) as query:
        scene.wait(lambda: scene.all("LIED_TO"), lambda records: len(records) == COUNT)
        scene.drained(query, "lied")
        scene.sql(f"PAUSE {query};")
        newest(Path(server.engine.env.state_dir) / "default_" / query, "offsets").write_bytes(b"")
        scene.sql(f"RESUME {query};")
        found = scene.wait(
            lambda: next(q["state"] for q in scene.client.queries() if q["id"] == query),
            lambda state: state != "RUNNING",
            10,
        )
        assert found == "DEGRADED"
        (told,) = scene.sql(f"EXPLAIN {query};")
        reason = told["queryDescription"]["queryErrors"][-1]["errorMessage"]
        assert "which it wrote, are not known" in reason and "TERMINATE the query" in reason


def counts(scene: Scene, topic: str) -> dict[bytes, int]:
    return {r.key: json.loads(r.value)["C"] for r in scene._reader.read(topic)}


def test_a_checkpoint_file_is_made_by_one_only(server, tmp_path: Path):
    """Two servers that believe to run the same query cannot both have planned its next batch."""
    spark = server.engine.env.spark
    jvm, session = spark._jvm, spark._jsparkSession
    file = jvm.org.apache.hadoop.fs.Path(str(tmp_path / "offsets" / "7"))
    managers = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
    manager = managers.create(file.getParent(), session.sessionState().newHadoopConf())
    assert manager.getClass().getName() == FILE_MANAGER
    first, second = manager.createAtomic(file, False), manager.createAtomic(file, False)
    for stream, content in ((first, b"first"), (second, b"second")):
        stream.write(bytearray(content))
    assert not (tmp_path / "offsets" / "7").exists()
    first.close()
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        second.close()
    assert (tmp_path / "offsets" / "7").read_bytes() == b"first"
    third = manager.createAtomic(file, True)
    third.write(bytearray(b"third"))
    third.close()
    assert (tmp_path / "offsets" / "7").read_bytes() == b"third"
