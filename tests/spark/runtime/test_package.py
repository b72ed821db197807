"""What executors get: the package as a zip, and a session that brings it to them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest

from headrace.cli.main import main
from headrace.model.errors import HeadraceError
from headrace.model.settings import Settings
from headrace.server.launch import LaunchOptions, RunningServer, _check_atomic
from headrace.spark.runtime import package
from headrace.spark.runtime.package import (
    DIRECTORY,
    dependencies,
    required,
    write_package,
)
from headrace.spark.runtime.session import (
    FILE_MANAGER_SETTING,
    _brought,
    _collector,
    _java_options,
    driver_address,
    is_local,
)


def test_the_package_is_importable_where_it_is_unpacked(tmp_path):
    assert main(["package", str(tmp_path / "package.zip"), "--also", "pytz"]) == 0
    with ZipFile(tmp_path / "package.zip") as package:
        package.extractall(tmp_path / DIRECTORY)
    look = "import headrace.model.settings, pytz; print(headrace.__file__, pytz.__file__)"
    code = f"import sys; sys.path.insert(0, {str(tmp_path / DIRECTORY)!r}); {look}"
    command = [sys.executable, "-I", "-S", "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [Path(f).is_relative_to(tmp_path) for f in ran.stdout.split()] == [True, True]


def test_the_same_package_is_the_same_file(tmp_path):
    files = [tmp_path / "one.zip", tmp_path / "two.zip"]
    for file in files:
        write_package(file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert sorted(tmp_path.iterdir()) == files


def test_dependencies_come_with_what_they_require():
    names = {found.name.lower() for found in required(dependencies())}
    assert {"pandas", "numpy", "pyarrow", "confluent-kafka", "protobuf"} <= names
    assert not names & {"pyspark", "py4j", "pytest", "headrace"}


def test_executors_need_what_the_server_requires(monkeypatch):
    """The client's requirements, and those of the extra `server`; not those of others."""
    told = [
        "httpx==0.28.1",
        "pyspark==4.2.0; extra == 'server'",
        'pyarrow==26.0.1; extra == "server"',
        'pytest==9.2.0; extra == "dev"',
        'colorama; sys_platform == "win32"',
    ]
    monkeypatch.setattr(package, "distribution", lambda name: SimpleNamespace(requires=told))
    assert package.dependencies() == ["httpx", "pyarrow", "colorama"]


def test_what_is_not_installed_is_told(tmp_path, capsys):
    assert main(["package", str(tmp_path / "package.zip"), "--also", "no-such-thing"]) == 1
    assert capsys.readouterr().err == "no-such-thing is not installed here.\n"


def test_masters():
    assert is_local("local") and is_local("local[*]") and is_local("local[2]")
    assert not is_local("local-cluster[2,1,1024]") and not is_local("yarn")
    assert driver_address("spark://127.0.0.1:7077,127.0.0.1:7078") == "127.0.0.1"
    assert driver_address("k8s://https://kubernetes.default.svc") is None


def test_executors_get_what_is_ours_and_what_is_the_users(tmp_path):
    told = {"spark.archives": "a.zip#a", "spark.jars": "mine.jar"}
    brought = _brought(told, ["ours.jar"], tmp_path)
    assert brought == {
        "spark.archives": f"a.zip#a,{tmp_path}/headrace.zip#{DIRECTORY}",
        "spark.jars": "mine.jar,ours.jar",
        "spark.executorEnv.PYTHONPATH": DIRECTORY,
    }
    assert (tmp_path / "headrace.zip").is_file()
    # Whoever brings the package with all that it needs, gets no other.
    packed = {"spark.archives": f"hdfs:///headrace.zip#{DIRECTORY}"}
    assert _brought(packed, [], tmp_path)["spark.archives"] == packed["spark.archives"]


def test_a_cluster_needs_a_place_for_states(tmp_path):
    assert "need a place for states that they share: set state.dir" in refused(
        tmp_path, {"spark.master": "spark://127.0.0.1:7077"}
    )


@pytest.mark.parametrize("master", ["yarn", "k8s://https://there", "spark://192.0.2.1:7077"])
def test_other_machines_need_a_kafka_that_they_reach(tmp_path, master):
    told = refused(tmp_path, {"spark.master": master, "state.dir": "hdfs:///state"})
    assert f"The executors of {master} cannot reach the embedded broker" in told


@pytest.mark.parametrize("state_dir", ["s3a://bucket/state", "gs://bucket/state"])
def test_states_need_atomic_renames(tmp_path, state_dir):
    told = refused(tmp_path, {"state.dir": state_dir})
    assert f"state.dir is {state_dir}, but" in told and "cannot rename files atomically" in told


def test_whoever_brings_a_class_that_needs_no_rename_may_use_s3():
    _check_atomic("s3a://bucket/state", Settings({FILE_MANAGER_SETTING: "some.FileManager"}))
    for fine in ("", "/state", "file:///state", "hdfs://name/state", "abfss://c@a/state"):
        _check_atomic(fine, Settings({}))


def refused(folder: Path, settings: dict[str, str]) -> str:
    """Why a server does not start; then it has left nothing behind."""
    with pytest.raises(HeadraceError) as failure:
        RunningServer(LaunchOptions(folder / "data", settings=settings)).start()
    assert not (folder / "data").exists()
    return str(failure.value)


def test_buckets_are_at_least_one():
    assert Settings({"state.buckets": "64"})["ksql.streams.state.buckets"] == 64
    with pytest.raises(HeadraceError, match="Value must be at least 1"):
        Settings({"state.buckets": "0"})


def test_java_options_of_the_user_come_after_ours():
    ours = {
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:+ExitOnOutOfMemoryError",
        "spark.executor.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",
    }
    assert _java_options(ours, {"spark.driver.extraJavaOptions": "-Xmx9g"}) == {
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:+ExitOnOutOfMemoryError -Xmx9g"
    }
    # Java does not start with two collectors.
    collector = {"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}
    assert _java_options(ours, collector) == {
        "spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError -XX:+UseG1GC"
    }
    assert _java_options(ours, {}) == {}


@pytest.mark.parametrize(("cores", "own"), [(2, "Serial"), (16, "Parallel")])
def test_a_collector_of_the_user_takes_the_place_of_ours_with_all_that_belongs_to_it(
    monkeypatch, cores, own
):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    driver = "spark.driver.extraJavaOptions"
    ours = {driver: f"-Xss4m {_collector()} -XX:+ExitOnOutOfMemoryError"}
    assert f"-XX:+Use{own}GC" in ours[driver]
    assert _java_options(ours, {driver: "-XX:+UseZGC"}) == {
        driver: "-Xss4m -XX:+ExitOnOutOfMemoryError -XX:+UseZGC"
    }
