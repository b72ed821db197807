"""Where Headrace keeps things on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """What can be made again: HEADRACE_HOME, or `headrace` in the user's cache directory."""
    if chosen := os.environ.get("HEADRACE_HOME"):
        return Path(chosen).expanduser().absolute()
    return _base("XDG_CACHE_HOME", ".cache") / "headrace"


def data_home() -> Path:
    """What must not be lost: `headrace` in the user's data directory."""
    return _base("XDG_DATA_HOME", ".local/share") / "headrace"


def _base(variable: str, otherwise: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / otherwise).absolute()
