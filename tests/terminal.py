"""The shell in a pseudo-terminal: type, and wait for what it shows."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>78]|\x1b\][^\x07]*\x07|\r")
# What the editor sends when it begins and when it stops to listen: pasted text is marked meanwhile.
PROMPT, END_OF_INPUT = "\x1b[?2004h", "\x1b[?2004l"
SOURCES = Path(__file__).parents[1] / "src"


class Terminal:
    def __init__(self, url, home, columns=100, interrupts=signal.SIG_DFL, **variables):
        """`interrupts`: what the process finds to be done with them, whoever started us."""
        self.master, slave = pty.openpty()
        environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCES),
            "TERM": "xterm-256color",
            "COLUMNS": str(columns),
            "LINES": "40",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "XDG_STATE_HOME": str(home),
            "EDITOR": "",
            "VISUAL": "",
            **variables,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli.main", url],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: _own_the_terminal(interrupts),
        )
        os.close(slave)
        self.raw = ""
        self.seen = 0

    def text(self):
        return ESCAPES.sub("", self.raw)

    def expect(self, wanted, seconds=60):
        """What was shown up to and including `wanted`, from where the last one ended."""
        deadline = time.monotonic() + seconds
        while True:
            text = self.text()
            found = text.find(wanted, self.seen)
            if found >= 0:
                shown = text[self.seen : found + len(wanted)]
                self.seen = found + len(wanted)
                return shown
            assert time.monotonic() < deadline, f"{wanted!r} not in {text[self.seen :]!r}"
            self.read(0.1)

    def answer(self, text, until=None, seconds=60):
        """Enters a text; what is shown from there to the next prompt.

        `until`: something to wait for, and then to press Ctrl-C.
        """
        begin = len(self.raw)
        for line in text.split("\n"):
            self.enter(line)
        if until is not None:
            self.expect_raw(until, begin, seconds)
            self.type("\x03")
        shown = self.expect_raw(END_OF_INPUT, begin, seconds)
        shown = self.expect_raw(PROMPT, shown, seconds)
        return ESCAPES.sub("", self.raw[self._after(END_OF_INPUT, begin) : shown - len(PROMPT)])

    def _after(self, wanted, begin):
        return self.raw.index(wanted, begin) + len(wanted)

    def expect_raw(self, wanted, begin, seconds):
        """Waits for something in the raw output; where it ends."""
        deadline = time.monotonic() + seconds
        while wanted not in self.raw[begin:]:
            assert time.monotonic() < deadline, f"{wanted!r} not in {self.raw[begin:]!r}"
            if self.process.poll() is None or select.select([self.master], [], [], 0)[0]:
                self.read(0.1)
        return self._after(wanted, begin)

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.raw += os.read(self.master, 65536).decode(errors="replace")

    def type(self, text):
        os.write(self.master, text.encode())

    def enter(self, text):
        self.type(text + "\r")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


def _own_the_terminal(interrupts):
    import fcntl
    import termios

    signal.signal(signal.SIGINT, interrupts)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
