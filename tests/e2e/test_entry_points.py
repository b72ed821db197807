"""Header columns, wrapping and ROWTIME at every entry point: create, insert, select, describe."""

from __future__ import annotations

import asyncio
import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import Page, start_browser

from headrace.cli.main import main
from headrace.client import AsyncClient, Client
from scene import record

pytestmark = pytest.mark.heavy

EARLIEST = {"auto.offset.reset": "earliest"}


def as_text(values):
    return ["null" if value is None else str(value) for value in values]


class ClientEntry:
    """The Python client. Every entry point runs statements, selects rows, describes a source."""

    def __init__(self, url):
        self.client = Client(url, properties=EARLIEST)

    def run(self, sql):
        self.client.execute(sql)

    def select(self, sql):
        return [as_text(row) for row in self.client.pull(sql)]

    def describe(self, name):
        fields = self.client.describe(name)["fields"]
        return " ".join(f"{f['name']} {f.get('type', '')} {f.get('headerKey', '')}" for f in fields)


class AsyncClientEntry:
    def __init__(self, url):
        self.url = url

    def _ask(self, question):
        async def ask():
            async with AsyncClient(self.url, properties=EARLIEST) as client:
                return await question(client)

        return asyncio.run(ask())

    def run(self, sql):
        self._ask(lambda client: client.execute(sql))

    def select(self, sql):
        return [as_text(row) for row in self._ask(lambda client: client.pull(sql))]

    def describe(self, name):
        fields = self._ask(lambda client: client.describe(name))["fields"]
        return " ".join(f"{f['name']} {f.get('type', '')} {f.get('headerKey', '')}" for f in fields)


def table_rows(text):
    """The rows of a table as the shell writes it, without its heading."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


class FileEntry:
    """`headrace -f FILE`."""

    def __init__(self, url, directory, capsys):
        self.url, self.file, self.capsys = url, directory / "statements.sql", capsys

    def run(self, sql):
        self.file.write_text("SET 'auto.offset.reset' = 'earliest';\n" + sql)
        code = main([self.url, "-f", str(self.file)])
        told = self.capsys.readouterr()
        assert code == 0, told.err
        return told.out

    def select(self, sql):
        return table_rows(self.run(sql))

    def describe(self, name):
        return self.run(f"DESCRIBE {name};")


class MigrationEntry(ClientEntry):
    """A migration changes things; what it made is looked at with the client."""

    def __init__(self, url, directory, prefix, capsys):
        super().__init__(url)
        self.path, self.capsys, self.version = directory / "project", capsys, 0
        assert main(["migrations", "new-project", str(self.path), url]) == 0
        with (self.path / "ksql-migrations.properties").open("a") as file:
            file.write(f"ksql.migrations.stream.name={prefix}_EVENTS\n")
            file.write(f"ksql.migrations.table.name={prefix}_VERSIONS\n")
        self._migrate("initialize-metadata")

    def _migrate(self, *arguments):
        code = main(["migrations", "-c", str(self.path / "ksql-migrations.properties"), *arguments])
        told = self.capsys.readouterr()
        assert code == 0, told.err

    def run(self, sql):
        self.version += 1
        (self.path / "migrations" / f"V{self.version:06d}__step.sql").write_text(sql)
        self._migrate("apply", "--next")

    def close(self):
        self._migrate("destroy-metadata")


class ShellEntry:
    """The shell in a terminal."""

    def __init__(self, url, directory):
        from terminal import PROMPT, Terminal

        self.terminal = Terminal(url, directory, columns=120)
        self.terminal.expect_raw(PROMPT, 0, 60)
        self.terminal.answer("SET 'auto.offset.reset' = 'earliest';")

    def run(self, sql):
        for statement in re.findall(r"[^;]+;", sql):
            shown = self.terminal.answer(statement)
            assert "created" in shown or "INSERT" in statement, shown

    def select(self, sql):
        return table_rows(self.terminal.answer(sql))

    def describe(self, name):
        return self.terminal.answer(f"DESCRIBE {name};")

    def close(self):
        self.terminal.close()


class PageEntry:
    """The web page in a browser."""

    def __init__(self, url):
        self.browser = start_browser()
        self.page = Page(self.browser, url)

    def run(self, sql):
        self.page.run(sql)
        self.page.wait(lambda: not self.page.text("#results .note"))
        assert not self.page.text("#results .bad")

    def select(self, sql):
        self.page.run(sql)
        self.page.wait(lambda: self.page.text("#results .note") == "Limit Reached")
        return self.page.rows()

    def describe(self, name):
        self.page.run(f"DESCRIBE {name};")
        self.page.wait(lambda: "Column" in self.page.text("#results th"))
        return self.page.text("#results td")

    def close(self):
        self.browser.quit()


@contextmanager
def opened(name, url, directory, capsys):
    makers = {
        "client": lambda: ClientEntry(url),
        "async_client": lambda: AsyncClientEntry(url),
        "file": lambda: FileEntry(url, directory, capsys),
        "migration": lambda: MigrationEntry(url, directory, "ENTRY_POINT", capsys),
        "shell": lambda: ShellEntry(url, directory),
        "page": lambda: PageEntry(url),
    }
    entry = makers[name]()
    try:
        yield entry
    finally:
        getattr(entry, "close", lambda: None)()


@pytest.mark.parametrize("name", ["client", "async_client", "file", "migration", "shell", "page"])
def test_header_columns_wrapping_and_rowtime_work(name, scene, tmp_path, capsys):
    headed, bare = f"headed_{name}", f"bare_{name}"
    with opened(name, scene.url, tmp_path, capsys) as entry:
        entry.run(
            f"CREATE STREAM {headed} (id INT KEY, v STRING, n INT, trace BYTES HEADER('trace'))"
            f" WITH (kafka_topic='{headed}', value_format='JSON', partitions=1);"
            f"CREATE STREAM {bare} (id INT KEY, v STRING)"
            f" WITH (kafka_topic='{bare}', value_format='JSON', partitions=1,"
            f" wrap_single_value=false);"
        )
        entry.run(
            f"INSERT INTO {headed} (ROWTIME, id, v, n) VALUES (1234, 1, 'inserted', 5);"
            f"INSERT INTO {bare} (ROWTIME, id, v) VALUES (5678, 2, 'bare');"
        )
        # A header comes with a record: no statement writes one.
        scene.write(headed, record({"v": "written", "n": 6}, None, (("trace", b"t-1"),), 2345))
        assert [r.value for r in scene.records(bare, 1)] == [b'"bare"']
        assert [r.timestamp for r in scene.records(bare, 1)] == [5678]

        rows = entry.select(
            f"SELECT v, n, FROM_BYTES(trace, 'utf8') AS trace, ROWTIME AS moment"
            f" FROM {headed} EMIT CHANGES LIMIT 2;"
        )
        assert rows == [["inserted", "5", "null", "1234"], ["written", "6", "t-1", "2345"]]
        rows = entry.select(f"SELECT id, v, ROWTIME AS moment FROM {bare} EMIT CHANGES LIMIT 1;")
        assert rows == [["2", "bare", "5678"]]

        described = entry.describe(headed)
        assert re.search(r"trace\W+.*header", described, re.IGNORECASE | re.DOTALL), described
        assert "ROWTIME" not in described


def test_the_example_in_the_guide_to_the_client_runs(scene, capsys):
    guide = (Path(__file__).parents[2] / "docs" / "python-client.md").read_text()
    example = guide.split("```python\n")[1].split("```")[0]
    exec(compile(example.replace("http://localhost:8088", scene.url), "python-client.md", "exec"))
    told = capsys.readouterr().out.splitlines()
    assert "['ID', 'ITEM', 'PLACED']" in told[0]
    assert told[1].startswith("cable ") and told[2] == "Limit Reached"
