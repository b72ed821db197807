"""Where Headrace keeps things on this machine."""

from __future__ import annotations

import os
from pathlib import Path

_HOME = "HEADRACE_HOME"


def home() -> Path:
    """What can be made again: HEADRACE_HOME, or `headrace` in the user's cache directory."""
    return _own() or _base("XDG_CACHE_HOME", ".cache") / "headrace"


def data_home() -> Path:
    """What must not be lost: HEADRACE_HOME/data, or `headrace` in the user's data directory."""
    own = _own()
    return _base("XDG_DATA_HOME", ".local/share") / "headrace" if own is None else own / "data"


def _own() -> Path | None:
    chosen = os.environ.get(_HOME)
    return Path(chosen).expanduser().absolute() if chosen else None


def _base(variable: str, otherwise: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / otherwise).absolute()
