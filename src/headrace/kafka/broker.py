"""The embedded broker: one real Kafka node as a child process, for a machine that has no Kafka.

It is started again when it dies (`keep`). Its life hangs on two things that end with the server
however the server ends. A pipe: a shell
beside the broker waits on it and stops the broker, cleanly, when the server is gone. A file lock
on the directory: the broker inherits it, so it is held until the last process is gone and no
second broker ever starts on the same data.
"""

from __future__ import annotations

import base64
import fcntl
import json
import logging
import os
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from xml.sax.saxutils import escape

from headrace.kafka.jars import Jars, ensure_jars
from headrace.kafka.java_home import find_java
from headrace.kafka.ports import (
    LOOPBACK,
    free_port,
    is_free,
    require_free,
)
from headrace.model.errors import UnavailableError

LOG = logging.getLogger("headrace.broker")

START_SECONDS = 60
STOP_SECONDS = 20
WATCH_SECONDS = 0.25

# Of this program, as the system's pid and start time tell only of the process it runs in: a server
# that starts anew does so in the same one.
_PROGRAM = uuid.uuid4().hex

# The client compiler alone: in short runs on two cores (2 x 600k records) the broker then took
# about half the CPU time, which Spark gets. What C2 wins in a long run has not been measured.
JVM_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
)

SETTINGS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    # A statement creates its topics itself; a mistyped name must not create one.
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # After a kill the node waits for its own old session to end before it serves again.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "log.segment.delete.delay.ms": "1000",
    # Kafka ages records by their own time: orders of last year would be gone in a minute. Whoever
    # plays with old data keeps it; a topic with its own RETENTION_MS still drops it.
    "log.retention.ms": "-1",
}

LOG4J = """\
<Configuration status="error" shutdownHook="disable">
  <Appenders>
    <RollingFile name="file" fileName="{log}" filePattern="{log}.%i">
      <PatternLayout pattern="%d %p %m (%c{{1}})%n"/>
      <SizeBasedTriggeringPolicy size="10 MB"/>
      <DefaultRolloverStrategy max="2"/>
    </RollingFile>
  </Appenders>
  <Loggers><Root level="warn"><AppenderRef ref="file"/></Root></Loggers>
</Configuration>
"""

# The shell becomes the broker (`exec` keeps its pid). Its child waits until the server closes the
# pipe or dies, asks the broker to stop, and ends it if it does not.
LIFELINE = """\
exec 3<&0
(
  cat <&3 >/dev/null
  kill -TERM $$ 2>/dev/null
  for i in $(seq 100); do kill -0 $$ 2>/dev/null || exit; sleep 0.2; done
  kill -KILL $$
) &
exec "$@" </dev/null 3<&-
"""


class EmbeddedBroker:
    """A Kafka node whose data lies in a directory and survives restarts.

    `port` is used or refused; without one, or with 0, a free port is taken. `settings` are broker
    settings that win over the embedded broker's own.
    """

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        jars: Jars | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory.absolute()
        self.log = self.directory / "broker.log"
        self._port = port or None
        self._jars = jars
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None  # a file descriptor

    @property
    def port(self) -> int:
        if self._port is None:
            raise UnavailableError("The embedded Kafka broker has not been started.")
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self.running and self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts the broker and waits until it answers."""
        if self.running:
            return
        self.stop()  # what is left of one that died
        self._take_directory()
        try:
            if self._port is None:
                self._port = free_port()
            require_free(self._port, "the embedded Kafka broker")
            self._configure()
            self._format()
            self._launch()
            self._await_answer()
        except BaseException:  # also Ctrl-C: no broker is left running
            self.stop()
            raise

    def keep(self, stopping: threading.Event) -> None:
        """Starts it again on the same port whenever it ends, until `stopping` is set; raises if it
        cannot be started."""
        while not stopping.wait(WATCH_SECONDS):
            if not self.running:
                LOG.error("The embedded Kafka broker has ended: it starts again")
                self.start()
                LOG.warning("The embedded Kafka broker runs again")

    @property
    def failure(self) -> str | None:
        """Why it does not serve right now; None if it does."""
        return None if self.running else "The broker's process has ended"

    def stop(self) -> None:
        """Stops the broker and waits until it is gone."""
        if self._process is not None:
            end_group(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                end_group(self._process.pid, signal.SIGKILL)
                self._process.wait()
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process = None
            self._pid_file.unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def _pid_file(self) -> Path:
        return self.directory / "broker.pid"

    def _take_directory(self) -> None:
        """Locks the directory; ends a broker that a killed server left on it."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = open_above_the_shell(self.directory / "lock")
        except OSError as failure:
            raise UnavailableError(
                f"The embedded Kafka broker cannot keep its data in {self.directory} "
                f"({failure.strerror}): choose a directory that can be written."
            ) from failure
        if self._lock_within(0):
            return
        left = Leftover.read(self._pid_file)
        if left is None:
            # Whoever held it has just stopped its broker, and the watcher follows.
            if self._lock_within(2):
                return
        elif not left.owner_lives:
            # It is on its way out by itself; after a while it is helped along.
            for number in (signal.SIGTERM, signal.SIGKILL):
                left.end(number)
                if self._lock_within(STOP_SECONDS / 2):
                    return
        os.close(self._lock)
        self._lock = None
        owner = f" (process {left.owner})" if left else ""
        raise UnavailableError(
            f"Another Headrace server{owner} uses {self.directory}: "
            "stop it or choose another data directory."
        )

    def _lock_within(self, seconds: float) -> bool:
        assert self._lock is not None
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
            time.sleep(0.02)

    def _configure(self) -> None:
        controller = f"{LOOPBACK}:{free_port()}"
        listeners = f"PLAINTEXT://{self.bootstrap_servers},CONTROLLER://{controller}"
        settings = {
            **SETTINGS,
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(self.directory / "data"),
            **self._settings,
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.directory / "server.properties").write_text(text)
        (self.directory / "log4j2.xml").write_text(LOG4J.format(log=escape(str(self.log))))

    def _command(self, main: str, *arguments: str) -> list[str]:
        jars = self._jars or ensure_jars()
        return [
            str(find_java().executable),
            *JVM_OPTIONS,
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.xml'}",
            "-cp",
            os.pathsep.join(map(str, jars.broker)),
            main,
            *arguments,
        ]

    def _format(self) -> None:
        """Gives the data directory its cluster id; only the first start has to."""
        if (self.directory / "data" / "meta.properties").exists():
            return
        # An id that begins with a dash would pass for an option.
        cluster = base64.b64encode(uuid.uuid4().bytes, altchars=b"AA").decode().rstrip("=")
        config = str(self.directory / "server.properties")
        command = self._command(
            "kafka.tools.StorageTool", "format", "-t", cluster, "-c", config, "--ignore-formatted"
        )
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=START_SECONDS, check=False
        )
        if answer.returncode != 0:
            raise UnavailableError(
                "The embedded Kafka broker's data directory could not be prepared: "
                f"{_last_line(answer.stderr + answer.stdout)}."
            )

    def _launch(self) -> None:
        assert self._lock is not None
        command = self._command("kafka.Kafka", str(self.directory / "server.properties"))
        with (self.directory / "broker.out").open("wb") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", LIFELINE, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=[self._lock],
                # Ctrl-C in the server's terminal must not reach the broker before the server.
                start_new_session=True,
            )
        Leftover.write(self._pid_file, self._process.pid)

    def _await_answer(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise UnavailableError(
                    f"The embedded Kafka broker did not start: {self._reason()}; "
                    f"its log is {self.log}."
                )
            with suppress(OSError), socket.create_connection((LOOPBACK, self.port), 1):
                return
            time.sleep(0.02)
        raise UnavailableError(
            f"The embedded Kafka broker did not answer within {START_SECONDS} s; "
            f"its log is {self.log}."
        )

    def _reason(self) -> str:
        if not is_free(self.port):
            return f"port {self.port} is taken"
        for file in (self.directory / "broker.out", self.log):
            with suppress(OSError):
                if line := _last_line(file.read_text(errors="replace")):
                    return line
        return "it gave no reason"


class Leftover:
    """What the pid file says of a broker: which process it is, and which server owned it."""

    def __init__(
        self, broker: int, broker_start: str, owner: int, owner_start: str, program: str = ""
    ) -> None:
        self.broker = broker
        self.owner = owner
        self._broker_start = broker_start
        self._owner_start = owner_start
        self._program = program

    @staticmethod
    def write(file: Path, broker: int) -> None:
        owner = os.getpid()
        file.write_text(
            json.dumps(
                {
                    "broker": broker,
                    "broker_start": start_time(broker) or "",
                    "owner": owner,
                    "owner_start": start_time(owner) or "",
                    "program": _PROGRAM,
                }
            )
        )

    @staticmethod
    def read(file: Path) -> Leftover | None:
        try:
            return Leftover(**json.loads(file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    @property
    def owner_lives(self) -> bool:
        if self.owner == os.getpid() and self._program != _PROGRAM:
            return False  # this process ran another program then
        return start_time(self.owner) == self._owner_start

    def end(self, number: signal.Signals) -> None:
        # A pid is reused; together with its start time it is not.
        if start_time(self.broker) == self._broker_start:
            end_group(self.broker, number)


def open_above_the_shell(file: Path) -> int:
    """Opens with a descriptor of 10 or more: a shell uses the lower ones as it likes."""
    low = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        return fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 10)
    finally:
        os.close(low)


def start_time(pid: int) -> str | None:
    """When the process started, in the system's own words; None if there is no such process."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.parent.parent.joinpath("self").exists():
        try:
            # The 22nd field; the 2nd, the command's name in brackets, may hold spaces.
            return stat.read_text().rpartition(")")[2].split()[19]
        except OSError:
            return None
    answer = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or None


def end_group(pid: int, number: signal.Signals) -> None:
    """Signals the broker and the shell that watches over it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _last_line(text: str) -> str:
    """The line that says why: the last error, or else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if " ERROR " in line or "Exception" in line]
    return (errors or lines or [""])[-1].rstrip(".")
