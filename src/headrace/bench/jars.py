"""Jars of the other sides, beside Headrace's own: fetched once, and checked."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace.kafka.jars import (
    IVY_SETTINGS,
    _ivy_jar,
    _proxy_options,
)
from headrace.kafka.java_home import find_java
from headrace.model.errors import HeadraceError
from headrace.model.home import home


def ensure(pins: Mapping[str, str]) -> list[Path]:
    """The jars of these names (organisation:name:revision), which must hash to these values."""
    directory = home() / "jars" / "bench"
    wanted = {name: directory / "{1}-{2}.jar".format(*name.split(":")) for name in pins}
    missing = [name for name, path in wanted.items() if not _intact(path, pins[name])]
    if missing:
        _fetch(missing, directory)
    if lost := [name for name in missing if not _intact(wanted[name], pins[name])]:
        raise HeadraceError(f"{', '.join(lost)} could not be fetched")
    return list(wanted.values())


def _intact(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _fetch(names: Sequence[str], directory: Path) -> None:
    lines = [
        f'<dependency org="{o}" name="{n}" rev="{r}" conf="default->default" transitive="false"/>'
        for o, n, r in (name.split(":") for name in names)
    ]
    with tempfile.TemporaryDirectory() as work:
        settings = os.environ.get("HEADRACE_IVY_SETTINGS") or f"{work}/settings.xml"
        Path(f"{work}/settings.xml").write_text(IVY_SETTINGS)
        Path(f"{work}/ivy.xml").write_text(
            '<ivy-module version="2.0"><info organisation="headrace" module="bench"/>'
            f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
        )
        command = [str(find_java().executable), *_proxy_options(), "-jar", str(_ivy_jar())]
        command += ["-settings", settings, "-ivy", f"{work}/ivy.xml", "-cache", f"{work}/cache"]
        command += ["-retrieve", f"{directory}/[artifact]-[revision].[ext]"]
        subprocess.run(command, check=False, capture_output=True)
