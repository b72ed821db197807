"""The command line as scripts use it: arguments, `-e`, `-f`, pipes, exit codes."""

import argparse
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from fake_server import running
from headrace.cli.commands import COMMANDS
from headrace.cli.main import main
from headrace.cli.properties import read_properties
from headrace.cli.start import configure, launch_options
from headrace.model.errors import HeadraceError

STREAMS = """
 Stream Name | Kafka Topic | Key Format | Value Format | Windowed
------------------------------------------------------------------
 S           | s           | KAFKA      | JSON         | false
------------------------------------------------------------------
"""


def test_help_fits_a_screen_and_has_an_example(capsys):
    assert main(["--help"]) == 0
    texts = [capsys.readouterr().out]
    for command in COMMANDS:
        with pytest.raises(SystemExit) as left:
            command.run(["--help"])
        assert left.value.code == 0
        texts.append(capsys.readouterr().out)
    for text in texts:
        assert len(text.splitlines()) <= 40
        assert "example:" in text


def test_unknown_command(capsys):
    assert main(["strat"]) == 2
    assert capsys.readouterr().err == "Unknown command 'strat'. Did you mean 'start'?\n"


def test_execute(capsys, url, engine):
    assert main([url, "-e", "SHOW STREAMS;"]) == 0
    assert capsys.readouterr().out == STREAMS


def test_cli_is_a_command_too(capsys, url, engine):
    assert main(["cli", url, "-e", "SHOW STREAMS;"]) == 0


def test_query_in_a_pipe_has_bare_cells(capsys, url, engine):
    assert main([url, "-e", "SELECT * FROM S EMIT CHANGES LIMIT 2;"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "|ID|N|PRICE|X|",
        "|a|1|1.50|0.5|",
        "|b|2|null|NaN|",
        "Limit Reached",
    ]


def test_json_output(capsys, url, engine):
    assert main([url, "--output", "json", "-e", "SELECT * FROM T;"]) == 0
    assert '{"row":{"columns":["a",1,1.50,0.5]}}' in capsys.readouterr().out


def test_file_with_variables_and_properties(capsys, url, engine, tmp_path):
    script = tmp_path / "script.sql"
    script.write_text(
        "-- a comment; with a semicolon\n"
        "DEFINE b = '${a}2';\nSET 'auto.offset.reset' = 'earliest';\n"
        "CREATE STREAM ${b} …;\nUNSET 'auto.offset.reset'; UNDEFINE b;\nSHOW STREAMS"
    )
    assert main([url, "-f", str(script), "-d", "a='x'", "-s", "p=q"]) == 0
    create, show = engine.requests
    assert create.variables == {"a": "x", "b": "x2"}
    assert create.properties == {"p": "q", "auto.offset.reset": "earliest"}
    assert (show.variables, show.properties) == ({"a": "x"}, {"p": "q"})
    assert show.after_command == 7  # it waits for the command before it


def test_commands_of_the_shell_in_scripts(capsys, url, engine, tmp_path):
    inner, outer = tmp_path / "in ner.sql", tmp_path / "outer.sql"
    inner.write_text("SHOW TABLES;")
    outer.write_text(f"OUTPUT JSON;\nRUN SCRIPT '{inner}';\nexit;\nDROP STREAM NO_SUCH;")
    assert main([url, "-f", str(outer)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Output format set to JSON\n") and '"@type": "tables"' in told
    assert [request.text for request in engine.requests] == ["SHOW TABLES;"]
    assert main([url, "-e", "output xml; SHOW TABLES;"]) == 1


def test_first_failure_ends_a_script(capsys, url, engine):
    assert main([url, "-e", "DROP STREAM NO_SUCH; SHOW STREAMS;"]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "NO_SUCH does not exist.\n")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SET 'ksql.service.id' = 'x';", "cannot be overridden"),
        ("UNSET 'x';", "Cannot unset local property 'x' which was never set"),
        ("SET x;", "Syntax Error"),
    ],
)
def test_refused_settings(capsys, url, engine, sql, message):
    assert main([url, "-e", sql]) == 1
    assert message in capsys.readouterr().err


def test_unreadable_file(capsys, url, tmp_path):
    assert main([url, "-f", str(tmp_path / "none.sql")]) == 1
    assert "Failed to read file" in capsys.readouterr().err


def test_unreachable_server(capsys):
    assert main(["http://127.0.0.1:1", "-e", "SHOW STREAMS;"]) == 3
    assert "Cannot reach the server at http://127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_server_with_a_certificate_of_its_own(capsys, tmp_path):
    from headrace.server.settings import Tls

    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-out", str(certificate), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    with running(tls=Tls(certificate, key)) as (_, url):
        assert main([url, "-e", "SHOW STREAMS;"]) == 3
        assert "certificate" in capsys.readouterr().err
        assert main([url, "--cacert", str(certificate), "-e", "SHOW STREAMS;"]) == 0
        assert capsys.readouterr().out == STREAMS
    assert main([url, "--cacert", str(tmp_path / "none"), "-e", "SHOW STREAMS;"]) == 3


def test_standard_input(capsys, url, engine, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("SHOW STREAMS;"))
    assert main([url]) == 0
    assert capsys.readouterr().out == STREAMS


def test_queries_end_at_the_session_limits(capsys, url, engine):
    sql = "SELECT * FROM S EMIT CHANGES;"
    assert main([url, "--query-row-limit", "1", "-e", sql]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main([url, "--query-timeout", "200", "-e", sql]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Query Completed"


def test_print(capsys, url, engine):
    assert main([url, "-e", "PRINT s;"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Topic printing ceased"


def parse_start(*arguments):
    parser = argparse.ArgumentParser()
    configure(parser)
    return launch_options(parser.parse_args(arguments))


def test_start_options(tmp_path):
    assert parse_start() == {"settings": {}}
    config = tmp_path / "server.properties"
    config.write_text("ksql.service.id=1\nstate.dir=2\nksql.streams.bootstrap.servers=x:1\n")
    given = parse_start(
        *("--port", "1", "--kafka-port", "2", "--registry-port", "3", "--data-dir", "d"),
        *("--config", str(config), "--set", "ksql.service.id=b=c", "--kafka", "h:9"),
    )
    assert given == {
        "port": 1,
        "kafka_port": 2,
        "registry_port": 3,
        "data_dir": Path("d"),
        "settings": {"ksql.service.id": "b=c", "state.dir": "2", "bootstrap.servers": "h:9"},
    }
    for wrong in ("--port=x", "--port=70000", "--set=x"):
        with pytest.raises(SystemExit):
            parse_start(wrong)


def test_properties_files(tmp_path):
    text = """
    # a comment
    ! another
    a = 1
    b:2
    c   three words
    d
    e = one,\\
        two
    f\\:g = x\\\\y\\u00e4
    h = \\ud83d\\ude00\u2028and on
    """
    file = tmp_path / "a.properties"
    file.write_text(text, encoding="utf-8")
    assert read_properties(file) == {
        "a": "1",
        "b": "2",
        "c": "three words",
        "d": "",
        "e": "one,two",
        "f:g": "x\\yä",
        "h": "😀\u2028and on",
    }


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"a=\xff", "it is not UTF-8"), (b"a=\\u12x4", r"Invalid \\u escape sequence: \\u12x4")],
)
def test_properties_files_that_cannot_be_read(tmp_path, content, reason):
    file = tmp_path / "a.properties"
    file.write_bytes(content)
    with pytest.raises(HeadraceError, match=f"Failed to read file: {file}: {reason}"):
        read_properties(file)
