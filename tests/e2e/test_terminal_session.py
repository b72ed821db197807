"""The session in docs/terminal-session.md, entered again in a real terminal: it shows the same."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

DOCUMENT = Path(__file__).parents[2] / "docs" / "terminal-session.md"
FIRST, NEXT = "headrace> ", "        > "


@dataclass(frozen=True)
class Entry:
    typed: str
    shown: str

    def __str__(self):
        lines = self.typed.split("\n")
        entered = "\n".join([FIRST + lines[0], *(NEXT + line for line in lines[1:])])
        return f"{entered}\n{self.shown}" if self.shown else entered


def read(text):
    """The entries of a session: what is typed, and what is shown for it."""
    entries = []
    for line in text.splitlines():
        if line.startswith(FIRST):
            entries.append(Entry(line.removeprefix(FIRST), ""))
        elif line.startswith(NEXT) and not entries[-1].shown:
            typed = f"{entries[-1].typed}\n{line.removeprefix(NEXT)}"
            entries[-1] = Entry(typed, "")
        else:
            shown = f"{entries[-1].shown}\n{line}" if entries[-1].shown else line
            entries[-1] = Entry(entries[-1].typed, shown)
    return entries


def same_every_time(text):
    """Without what differs from run to run: numbers of queries."""
    text = re.sub(r"\b(C[ST]AS_\w+?_)\d+", r"\g<1>5", text)
    text = re.sub(r'"queryId": "[^"]*"', '"queryId": "transient_1"', text)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def without_rules(entries):
    """What can be compared: rules are as long as the numbers above them."""
    return [(e.typed, re.sub(r"^-+$", "---", e.shown, flags=re.MULTILINE)) for e in entries]


def replay(entries, url, home):
    from terminal import PROMPT, Terminal

    terminal = Terminal(url, home, columns=96, NO_COLOR="1")
    try:
        terminal.expect_raw(PROMPT, 0, 60)
        told = []
        for entry in entries:
            if entry.typed == "exit":
                terminal.enter("exit")
                terminal.expect("Exiting Headrace.")
                shown = "Exiting Headrace."
            else:
                shown = terminal.answer(entry.typed, until=_interrupted(entry))
            told.append(Entry(entry.typed, same_every_time(shown)))
        return told
    finally:
        terminal.close()


def _interrupted(entry):
    """For a query without an end: the last row that the session waits for."""
    endless = re.search(r"EMIT CHANGES;$", entry.typed) and entry.typed.startswith("SELECT *")
    return "|24.0" if endless else None


def test_the_recorded_session_is_true(server, tmp_path):
    before, session, after = re.split(r"^```\n", DOCUMENT.read_text(), flags=re.MULTILINE)
    entries = read(session)
    if os.environ.get("REWRITE"):
        entries = replay(entries, server.url, tmp_path / "recording")
        recorded = "\n".join(map(str, entries)) + "\n"
        DOCUMENT.write_text("```\n".join((before, recorded, after)))
    again = replay(entries, server.url, tmp_path / "replay")
    assert without_rules(again) == without_rules(entries)
