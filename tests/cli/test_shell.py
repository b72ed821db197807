"""The shell through a real terminal."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from headrace.cli.statement_splitter import is_complete
from terminal import SOURCES, Terminal

# Processes in real terminals, with patience of seconds: not for a machine that is busy with others.
pytestmark = pytest.mark.heavy


def asked(engine, before):
    """The one query that was started since."""
    deadline = time.monotonic() + 60
    while not (new := set(engine.queries) - before):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (only,) = new
    return engine.queries[only]


@pytest.fixture
def shell(url, engine, tmp_path):
    terminal = Terminal(url, tmp_path)
    terminal.expect("headrace>")
    yield terminal
    terminal.close()


def test_greeting_statement_and_leaving(shell, url):
    assert f"Server 0.1.0 at {url} RUNNING" in shell.text()
    shell.enter("SHOW STREAMS;")
    assert "KAFKA" in shell.expect("false")
    shell.enter("exit")
    shell.expect("Exiting Headrace.")
    assert shell.process.wait(10) == 0


def test_statement_of_many_lines_in_colour(shell, engine):
    shell.enter("CREATE STREAM X")
    shell.enter("  AS SELECT * -- all;")
    shell.enter("  FROM S WHERE A = 'x;';")
    shell.expect("Stream created")
    # Completion may have asked for names meanwhile.
    (statement,) = (r.text for r in engine.requests if r.text.startswith("CREATE STREAM X"))
    assert statement.split("\n")[2].strip() == "FROM S WHERE A = 'x;';"
    assert "\x1b[0;34;1m" in shell.raw or "\x1b[0;1;34m" in shell.raw  # a keyword
    assert shell.process.poll() is None


def test_ctrl_c_ends_the_query_and_not_the_program(shell, engine):
    before = set(engine.queries)
    shell.enter("SELECT * FROM S EMIT CHANGES;")
    shell.expect("|b ")
    query = asked(engine, before)
    query.push("zzz", 3, None, 1.0)
    assert "|zzz" in shell.expect("zzz")
    shell.type("\x03")
    shell.expect("Query terminated")
    assert query.closed.wait(30)
    shell.enter("SHOW STREAMS;")
    shell.expect("false")


def test_ctrl_c_before_the_first_row(shell, engine):
    before = set(engine.queries)
    shell.enter("SELECT * FROM S EMIT CHANGES;")
    query = asked(engine, before)
    shell.type("\x03")  # at about the time when the answer begins
    shell.expect("Query terminated")
    assert query.closed.wait(30)
    shell.enter("SHOW STREAMS;")
    shell.expect("false")


def test_ctrl_c_counts_where_the_shell_was_started_with_interrupts_ignored(url, engine, tmp_path):
    terminal = Terminal(url, tmp_path, interrupts=signal.SIG_IGN)
    terminal.expect("headrace>")
    terminal.enter("SELECT * FROM S EMIT CHANGES;")
    terminal.expect("|b ")
    terminal.type("\x03")
    terminal.expect("Query terminated")
    terminal.close()


def test_rows_fit_the_terminal(shell):
    shell.enter("SELECT * FROM S EMIT CHANGES LIMIT 2;")
    shell.expect("EMIT CHANGES LIMIT 2;")
    shown = shell.expect("Limit Reached")
    rows = [line for line in shown.split("\n") if line.startswith(("|", "+"))]
    assert rows and {len(line) for line in rows} == {100}


def test_errors_are_told_and_the_shell_goes_on(shell):
    shell.enter("DROP STREAM NO_SUCH;")
    shell.expect("NO_SUCH does not exist.")
    shell.enter("output xml")
    shell.expect("Invalid output format: 'xml'")
    shell.type("half a line")
    shell.type("\x03")
    shell.expect("headrace>")
    shell.enter("version")
    shell.expect("Version: ")


def test_commands_of_the_shell(shell, url, tmp_path):
    script = tmp_path / "a script.sql"
    script.write_text("SHOW TABLES;")
    spool = tmp_path / "spool.txt"
    shell.enter(f"spool '{spool}'")
    shell.expect("Session will be spooled")
    shell.enter(f"run script '{script}';")
    shell.expect("true")
    shell.enter("server")
    shell.expect(url)
    shell.enter(f"server {url};")
    shell.expect("Server now:")
    shell.enter("OUTPUT JSON;")
    shell.expect("Output format set to JSON")
    shell.enter("SHOW TABLES;")
    shell.expect('"@type": "tables"')
    shell.enter("set cli wrap off")
    shell.enter("set cli")
    shell.expect("OFF")
    shell.enter("request-pipelining")
    shell.expect("configuration: OFF")
    shell.enter("history")
    shell.expect("   1: spool")
    shell.enter("spool off")
    shell.expect("Spool written to")
    shell.enter("output tabular; SHOW TABLES;")
    shell.expect("Table Name")
    shell.enter("help")
    shell.expect("run script 'FILE'")
    shell.expect("Ctrl-D leaves")
    kept = spool.read_text()
    assert "headrace> run script" in kept and "Table Name" in kept


@pytest.mark.parametrize(
    ("typed", "shown"),
    [("SELECT PRI", "PRICE"), ("SELECT s.pri", "PRICE"), ("SELECT AB", "ABS"), ("SEL", "SELECT")],
)
def test_tab_completes_names_of_the_server(shell, typed, shown):
    shell.enter("version")
    shell.expect("Version: ")
    deadline = time.monotonic() + 10
    while True:  # names are fetched in the background
        shell.type(typed + "\t")
        try:
            shell.expect(shown, seconds=1)
            break
        except AssertionError:
            assert time.monotonic() < deadline
            shell.type("\x03")


def test_end_of_input_leaves(shell):
    shell.type("\x04")
    shell.expect("Exiting Headrace.")
    assert shell.process.wait(10) == 0


def test_history_outlives_the_session(url, engine, tmp_path):
    for _ in range(2):
        terminal = Terminal(url, tmp_path)
        terminal.expect("headrace>")
        terminal.enter("version")
        terminal.expect("Version")
        terminal.expect("headrace>")
        terminal.type("\x04")
        terminal.expect("Exiting")
        terminal.close()
    assert (tmp_path / "headrace" / "history").read_text().count("+version") >= 1
    terminal = Terminal(url, tmp_path)
    terminal.expect("headrace>")
    terminal.type("\x1b[A\r")
    terminal.expect("Version: ")
    terminal.close()


def test_unreachable_server_is_no_end(tmp_path):
    terminal = Terminal("http://127.0.0.1:1", tmp_path)
    terminal.expect("Cannot reach the server at http://127.0.0.1:1")
    terminal.expect("headrace>")
    terminal.close()


@contextmanager
def piped(url, sql, interrupts=signal.SIG_DFL):
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli.main", url, "-e", sql],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, interrupts),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_interrupt_while_piped(url, engine):
    before = set(engine.queries)
    with piped(url, "SELECT * FROM S EMIT CHANGES; SHOW STREAMS;") as process:
        assert process.stdout.readline() == "|ID|N|PRICE|X|\n"
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert "\x1b" not in rest and "Stream Name" not in rest
    assert process.returncode == 130
    assert asked(engine, before).closed.wait(30)


def test_a_script_in_the_background_ignores_interrupts(url, engine):
    before = set(engine.queries)
    with piped(url, "SELECT * FROM S EMIT CHANGES;", signal.SIG_IGN) as process:
        assert process.stdout.readline() == "|ID|N|PRICE|X|\n"
        process.send_signal(signal.SIGINT)
        asked(engine, before).push("zzz", 3, None, 1.0)
        assert [process.stdout.readline()[:2] for _ in range(3)] == ["|a", "|b", "|z"]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT `a;", False),
        ("SELECT /* a;", False),
        ("SELECT 'a;b';", True),
    ],
)
def test_complete_entries(text, complete):
    assert is_complete(text) is complete
