"""The interactive prompt: multi-line editing, history, colours, completion."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from headrace.cli import builtins
from headrace.cli.shell_session import Session
from headrace.cli.statement_splitter import first_word, is_complete
from headrace.client import Client, ClientError
from headrace.sql.keywords import KEYWORDS
from headrace.sql.tokens import tokenize

_STYLE = Style.from_dict(
    {
        "keyword": "ansiblue bold",
        "string": "ansigreen",
        "number": "ansicyan",
        "variable": "ansimagenta",
        "comment": "ansibrightblack italic",
    }
)
_KINDS = {
    "string": "class:string",
    "integer": "class:number",
    "decimal": "class:number",
    "float": "class:number",
    "variable": "class:variable",
}
_KEYWORDS = frozenset(KEYWORDS)
# After these the names of sources, columns and functions may have changed.
_CHANGES = frozenset({"CREATE", "DROP", "ALTER", "RUN", "SERVER"})


def history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(state) / "headrace" / "history"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


class SqlLexer(Lexer):
    """Colours what is typed, by the parser's own tokens."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = list(split_lines(_fragments(document.text)))
        return lambda number: lines[number] if number < len(lines) else []


def _fragments(text: str) -> StyleAndTextTuples:
    fragments: StyleAndTextTuples = []
    end = 0
    for token in tokenize(text).tokens:
        between = text[end : token.start]
        if between:  # layout and comments
            fragments.append(("class:comment" if between.strip() else "", between))
        end = token.end
        if token.kind != "eof":
            style = "class:keyword" if token.kind in _KEYWORDS else _KINDS.get(token.kind, "")
            fragments.append((style, token.text))
    return fragments


class Names:
    """What the server knows by name, fetched in the background."""

    def __init__(self) -> None:
        self.words: tuple[tuple[str, str], ...] = ()  # (name, what it is)

    def fetch(self, client: Client) -> None:
        own = client.connect(client.url)  # the session's connection is not for two threads
        threading.Thread(target=self._fetch, args=(own,), daemon=True).start()

    def _fetch(self, client: Client) -> None:
        try:
            with client:
                self.words = tuple(_names(client))
        except (ClientError, KeyError, IndexError):
            return  # completion is a comfort; without it there are still the keywords


def _names(client: Client) -> Iterator[tuple[str, str]]:
    for source in (*client.streams(), *client.tables()):
        yield source["name"], source["type"].lower()
        for field in client.describe(f"`{source['name']}`")["fields"]:
            yield field["name"], f"column of {source['name']}"
    for function in client.functions():
        yield function["name"], "function"


class SqlCompleter(Completer):
    """Completes the word before the cursor: keywords, names of the server, shell commands."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        word = document.get_word_before_cursor(pattern=None)
        start = word.rpartition(".")[2].rpartition("(")[2].lstrip("`'\"")
        if not start and not complete_event.completion_requested:
            return
        seen: set[str] = set()
        for name, kind in self._candidates(document):
            if name.upper().startswith(start.upper()) and name not in seen:
                seen.add(name)
                yield Completion(name, start_position=-len(start), display_meta=kind)

    def _candidates(self, document: Document) -> Iterator[tuple[str, str]]:
        if " " not in document.text.strip():
            yield from ((b.name, "command") for b in builtins.BUILTINS)
        yield from self.names.words
        yield from ((keyword, "keyword") for keyword in KEYWORDS)


class Prompt:
    """Asks for one entry at a time. Enter ends it where it is complete, else adds a line."""

    TEXT = "headrace> "

    def __init__(self, session: Session) -> None:
        self.session = session
        self.names = Names()
        self.names.fetch(session.client)
        vi = "vi" in os.environ.get("VISUAL", os.environ.get("EDITOR", ""))
        self.editor: PromptSession[str] = PromptSession(
            message=self.TEXT,
            multiline=True,
            prompt_continuation=" " * (len(self.TEXT) - 2) + "> ",
            lexer=SqlLexer() if session.output.colour else None,
            style=_STYLE,
            completer=SqlCompleter(self.names),
            complete_while_typing=False,
            history=FileHistory(str(history_file())),
            auto_suggest=AutoSuggestFromHistory(),
            key_bindings=_keys(),
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            enable_history_search=True,
        )

    def ask(self) -> str:
        return self.editor.prompt()

    def refresh(self, line: str) -> None:
        if first_word(line) in _CHANGES:
            self.names.fetch(self.session.client)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text
        if builtins.find(text) is not None or is_complete(text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys
