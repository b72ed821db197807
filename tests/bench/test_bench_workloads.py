"""The declarations of workloads, how they are chosen, and how outputs are compared."""

import json
from types import SimpleNamespace

import pytest

from headrace.bench.bench_server import covers, reached
from headrace.bench.compare import comparable_json, difference, fingerprint, written
from headrace.bench.figures import SIDES
from headrace.bench.flink import statements
from headrace.bench.jobs import Size
from headrace.bench.sides import spent
from headrace.bench.workload_runner import choose, families
from headrace.bench.workloads import JOBS, MEASURES, functions, json_records
from headrace.functions.registry import REGISTRY
from headrace.model.errors import HeadraceError
from headrace.sql.parser import parse


def test_names_are_told_apart():
    names = [w.name for w in (*JOBS, *MEASURES)]
    assert len(set(names)) == len(names)
    # A family is a name that can be given, too; one that is also a workload's would be unclear.
    assert {job.family for job in JOBS}.isdisjoint({m.name for m in MEASURES})


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_every_statement_is_one(job):
    topics = {name: name for name in job.topics}
    assert len(parse(job.statement("sink", topics))) == 1


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_bars_are_against_something(job):
    for bar in job.bars:
        assert not bar.against or bar.against in SIDES or bar.against in {j.name for j in JOBS}


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_records_are_what_the_columns_say(job):
    for source in job.sources:
        key, value = source.record(1234)
        assert key
        if "JSON" in source.properties and value.startswith(b"{"):
            declared = {c.split()[0].upper() for c in source.columns.split(", ")[1:]}
            assert set(json.loads(value)) == declared - {"TRACE"}


def test_json_records_have_ten_fields_of_which_some_are_read():
    assert len(json_records.FIELDS) == 10
    for count, read in json_records.READ.items():
        assert len(set(read) & set(json_records.FIELDS)) == len(read) == count


def test_a_warm_up_is_small_in_its_tables_too():
    (table,) = {s for job in JOBS for s in job.sources if s.name == "names_1000000"}
    assert table.count(Size(200_000)) == 1_000_000
    assert table.count(Size(50_000, warm_up=True)) == 50_000


def test_what_is_chosen_brings_what_its_bars_compare_with():
    assert [w.name for w in choose(["stateless-avro"])] == ["stateless-json", "stateless-avro"]
    assert {w.name for w in choose(["headers"])} == {
        "headers-none",
        "headers-unused",
        "headers-used",
    }
    assert len(choose([])) == len(JOBS) + len(MEASURES)
    assert all(w.quick for w in choose([], quick=True))
    with pytest.raises(HeadraceError, match="no workload 'nonsense'"):
        choose(["nonsense"])


def test_families_take_turns_together():
    groups = families(choose(["stateless-json", "stateless-avro", "aggregate-100", "pull"]))
    assert [[w.name for w in group] for group in groups] == [
        ["stateless-json", "stateless-avro"],
        ["aggregate-100"],
        ["pull"],
    ]


@pytest.mark.parametrize("call", [*functions.MAPPED, *functions.BATCHED], ids=lambda c: c.title)
def test_every_function_resolves(call):
    resolution = REGISTRY.resolve(call.function, [call._type(a) for a in call.args])
    parameters, _ = resolution.finish({})
    assert len(parameters) == len(call.args)


# --------------------------------------------------------------------------------- outputs


def test_streams_are_equal_in_any_order_and_spelling():
    ours = [(b"a", b'{"X":1,"Y":2.0}'), (b"b", b'{"X":2}')]
    theirs = [(b"b", b'{"X": 2, "Y": null}'), (b"a", b'{"Y":2,"X":1}')]
    assert (
        difference(written(ours, False, comparable_json), written(theirs, False, comparable_json))
        is None
    )


def test_streams_differ_by_how_often_a_record_is_there():
    once, twice = [(b"a", b"1")], [(b"a", b"1"), (b"a", b"1")]
    found = difference(
        written(once, False, comparable_json), written(twice, False, comparable_json)
    )
    assert found is not None and found.startswith("1 and 2 rows")


def test_tables_are_equal_by_the_last_record_of_each_key():
    ours = [(b"a", b"1"), (b"b", b"9"), (b"a", b"3"), (b"b", None)]
    theirs = [(b"a", b"3")]
    assert (
        difference(written(ours, True, comparable_json), written(theirs, True, comparable_json))
        is None
    )
    assert difference(written(ours, True, bytes), written([(b"a", b"4")], True, bytes))


def test_a_fingerprint_knows_records_and_not_their_order():
    records = [(b"a", b"1"), (b"b", b"2"), (b"a", b"1")]
    assert fingerprint(records, False) == fingerprint(records[::-1], False)
    assert fingerprint(records, False) != fingerprint(records[:2], False)
    assert fingerprint(records, True) == fingerprint([*records[:2], (b"c", None)], True)


# ---------------------------------------------------------------------------------- progress


class Query:
    def __init__(self, *ends):
        self.lastProgress = {"sources": [{"endOffset": end} for end in ends]}


def test_where_the_seconds_went():
    batch = {"durationMs": {"triggerExecution": 900, "addBatch": 700, "queryPlanning": 100}}
    query = SimpleNamespace(recentProgress=[batch, batch])
    assert spent(query, 2.0) == pytest.approx(
        {"outside": 0.2, "addBatch": 1.4, "queryPlanning": 0.2}
    )


def test_a_topic_that_is_read_twice_is_as_far_as_its_slower_reader():
    query = Query(json.dumps({"t": {"0": 5, "1": 7}}), {"t": {"0": 9, "1": 3}}, {"u": {"0": 1}})
    assert reached(query) == {"t": {"0": 5, "1": 3}, "u": {"0": 1}}
    assert reached(None) == {}
    assert covers({"t": {"0": 5}}, {"t": {"0": 5, "1": 0}})
    assert not covers({"t": {"0": 4}}, {"t": {"0": 5}})


# ------------------------------------------------------------------------------------ Flink


def test_a_job_as_flink_reads_it():
    (job,) = [job for job in JOBS if job.name == "stream-table-1000"]
    topics = {"asked_1000": "asked_1000_50", "names_1000": "names_1000_1000"}
    stream, table, sink, insert = statements(job.flink, topics, "out", "localhost:9092")
    assert "'connector'='kafka'" in stream and "'scan.startup.mode'='earliest-offset'" in stream
    assert "'connector'='upsert-kafka'" in table and "'scan.startup.mode'" not in table
    assert all("'scan.bounded.mode'='latest-offset'" in text for text in (stream, table))
    assert "scan" not in sink
    assert insert.startswith("INSERT INTO `out` SELECT l.k, l.N, r.NAME FROM `asked_1000_50` l")
