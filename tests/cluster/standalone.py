"""A standalone Spark cluster on loopback, from the PySpark wheel: a master, and workers that come
and go, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

from headrace.kafka.ports import free_port
from server_process import eventually

HOME = Path(find_spec("pyspark").origin).parent
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


class StandaloneCluster:
    """Knows its processes by their ids, and leaves none of them behind."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port, self._page = free_port(), free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        try:
            ports = ["--port", str(self.port), "--webui-port", str(self._page)]
            self._start("master", MASTER, *ports)
            eventually(lambda: self.state() is not None, 60)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_worker(self, name: str, cores: int = 1, memory: str = "1g") -> Path:
        """Starts a worker and waits until the master knows it; where its executors work."""
        known = len(self.alive())
        work = self.directory / name / "work"
        size = ["-c", str(cores), "-m", memory, "-d", str(work), "--webui-port", "0"]
        self._start(name, WORKER, *size, self.master)
        eventually(lambda: len(self.alive()) > known, 60)
        return work

    def kill_worker(self, name: str) -> None:
        """`kill -9` of the worker alone, as a crash is; its executor finds out by itself."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def state(self) -> dict[str, Any] | None:
        """What the master says of itself, if it answers."""
        try:
            with urlopen(f"http://127.0.0.1:{self._page}/json/", timeout=5) as answer:
                return dict(json.load(answer))
        except OSError:
            return None

    def alive(self) -> list[dict[str, Any]]:
        state = self.state()
        assert state is not None
        return [worker for worker in state["workers"] if worker["state"] == "ALIVE"]

    def close(self) -> None:
        for process in reversed(self._processes.values()):
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()

    def _start(self, name: str, kind: str, *arguments: str) -> None:
        folder = self.directory / name
        folder.mkdir(parents=True)
        # What executors have is what Spark brings them: nothing of ours is in their environment.
        inherited = ("PYTHONPATH", "PYSPARK_PYTHON", "SPARK_HOME")
        environment = {k: v for k, v in os.environ.items() if k not in inherited}
        environment |= {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        command = [str(HOME / "bin" / "spark-class"), kind, "--host", "127.0.0.1", *arguments]
        with (folder / "output.txt").open("wb") as output:
            self._processes[name] = subprocess.Popen(
                command, stdout=output, stderr=output, env=environment, cwd=folder
            )
