"""Output of the command line: the terminal, with colours where it has them, and the spool file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TextIO

from headrace.model.errors import HeadraceError

_RED, _FAINT, _RESET = "\x1b[31m", "\x1b[2m", "\x1b[0m"


class Output:
    def __init__(self, out: TextIO, errors: TextIO) -> None:
        self.out = out
        self.errors = errors
        self.terminal = out.isatty()
        self.colour = self.terminal and "NO_COLOR" not in os.environ
        self._spool: TextIO | None = None
        self._spool_path: Path | None = None

    @property
    def width(self) -> int | None:
        """How many columns fit; None where nothing limits a line."""
        return shutil.get_terminal_size().columns if self.terminal else None

    def line(self, text: str = "") -> None:
        self.out.write(text + "\n")
        self.out.flush()
        self.keep(text)

    def note(self, text: str) -> None:
        """Writes a note about the session, which does not go into a pipe."""
        if self.terminal:
            self.out.write(f"{_FAINT}{text}{_RESET}\n" if self.colour else f"{text}\n")
            self.out.flush()
            self.keep(text)

    def error(self, text: str) -> None:
        colour = self.errors.isatty() and "NO_COLOR" not in os.environ
        self.errors.write(f"{_RED}{text}{_RESET}\n" if colour else f"{text}\n")
        self.errors.flush()
        self.keep(text)

    def clear(self) -> None:
        if self.terminal:
            self.out.write("\x1b[2J\x1b[H")
            self.out.flush()

    # ---------------------------------------------------------------------------- spool

    def keep(self, text: str) -> None:
        if self._spool is not None:
            self._spool.write(text + "\n")
            self._spool.flush()

    def spool_to(self, path: Path) -> None:
        self.spool_off()
        try:
            self._spool = path.open("w", encoding="utf-8")
        except OSError as error:
            raise HeadraceError(f"Cannot SPOOL to file: {path}: {error.strerror}") from None
        self._spool_path = path.resolve()
        self.line(f"Session will be spooled to {self._spool_path}")
        self.line("Enter SPOOL OFF to disable")

    def spool_off(self) -> None:
        if self._spool is not None:
            self._spool.close()
            self._spool = None
            self.line(f"Spool written to {self._spool_path}")
