"""`headrace start` as a user starts it, to be killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from scene import Scene


class ServerProcess:
    """A server on its own broker at `ports` (server, Kafka, registry), or on the one at `kafka`."""

    def __init__(
        self,
        data_dir: Path,
        ports: tuple[int, int, int],
        kafka: str | None = None,
        settings: Mapping[str, str] | None = None,
        config: str | None = None,
    ) -> None:
        """`settings` go on the command line; `config` is the text of its properties file."""
        self.url = f"http://127.0.0.1:{ports[0]}"
        self.kafka = kafka or f"127.0.0.1:{ports[1]}"
        self._data_dir = data_dir
        names = ("--port", "--kafka-port", "--registry-port")
        told = [text for name, port in zip(names, ports, strict=True) for text in (name, str(port))]
        told += ["--kafka", kafka] if kafka else []
        for name, value in (settings or {}).items():
            told += ["--set", f"{name}={value}"]
        command = [sys.executable, "-m", "headrace.cli.main", "start", "--data-dir", str(data_dir)]
        data_dir.mkdir(parents=True, exist_ok=True)
        if config is not None:
            file = data_dir / "server.properties"
            file.write_text(config)
            told += ["--config", str(file)]
        self._output = (data_dir / "output.txt").open("ab")
        self.process = subprocess.Popen(
            [*command, *told], stdout=self._output, stderr=self._output, start_new_session=True
        )

    def scene(self) -> Scene:
        """Waits until the server answers."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.told()
            try:
                scene = Scene(self.url, self.kafka)
                scene.client.info()
                return scene
            except Exception:
                time.sleep(0.2)
        raise AssertionError(self.told())

    def told(self) -> str:
        """What the server has printed so far."""
        return Path(self._output.name).read_text()

    def kill(self, *, everything: bool = False) -> None:
        """`kill -9`: of the server, whose JVM then notices; or of both in the same moment."""
        end = os.killpg if everything else os.kill
        end(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._output.close()
        eventually(lambda: not alive(self._data_dir), 30)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def close(self) -> None:
        """Ends it, however a test ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def alive(data_dir: Path) -> list[str]:
    """Processes whose command line names the directory: the broker's and Spark's do."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(data_dir) in command:
            found.append(command)
    return found


def eventually(check: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.2)


def batches(data_dir: Path) -> int:
    """How many micro-batches all queries of a server have finished so far."""
    return sum(1 + _last(commits) for commits in data_dir.glob("state/*/*/commits"))


def unfinished(data_dir: Path) -> int:
    """How many queries of a server are, or died, in the middle of a micro-batch."""
    return sum(
        _last(checkpoint / "offsets") > _last(checkpoint / "commits")
        for checkpoint in data_dir.glob("state/*/*")
    )


def _last(log: Path) -> int:
    return max((int(f.name) for f in log.glob("[0-9]*")), default=-1)
