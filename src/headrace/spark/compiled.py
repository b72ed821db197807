"""Java classes of our own, compiled once per machine.

The compiler is Janino, which Spark brings along for its own generated code: no JDK is needed. It
knows neither lambdas nor type parameters. A jar lands in HEADRACE_HOME, under a name that changes
with the source, Spark, and the jars it is made against.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import pyspark

from headrace.kafka.java_home import find_java
from headrace.model.errors import UnavailableError
from headrace.model.home import home

_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
_COMPILE_SECONDS = 120


def compiled_jar(purpose: str, package: str, jars: Sequence[Path] = ()) -> Path:
    """The jar with the classes whose source is in a package, made first if it is not there (2 s).
    `jars` are what they need beside Spark's own."""
    sources = {
        file.name: file.read_text()
        for file in resources.files(package).iterdir()
        if file.name.endswith(".java")
    }
    told = repr((sorted(sources.items()), pyspark.__version__, [jar.name for jar in jars]))
    name = f"headrace-{purpose}-{hashlib.sha256(told.encode()).hexdigest()[:16]}.jar"
    jar = home() / "jars" / name
    if not jar.exists():
        try:
            jar.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=jar.parent, prefix=f".{purpose}-") as work:
                _compile(purpose, sources, jars, Path(work)).replace(jar)
        except OSError as failure:
            raise UnavailableError(
                f"{jar} cannot be made ({failure.strerror or failure}): set HEADRACE_HOME to a "
                "directory that can be written."
            ) from failure
    return jar


def _compile(purpose: str, sources: dict[str, str], jars: Sequence[Path], work: Path) -> Path:
    """Returns the jar, inside of `work`."""
    classes = work / "classes"
    classes.mkdir()
    files = [work / name for name in sorted(sources)]
    for file in files:
        file.write_text(sources[file.name])
    spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    path = os.pathsep.join(map(str, [*spark, *jars]))
    command = [str(find_java().executable), "-cp", path, _COMPILER]
    command += ["-d", str(classes), "-classpath", path, *map(str, files)]
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False
    )
    made = sorted(classes.rglob("*.class"))
    if answer.returncode != 0 or not made:
        said = (answer.stderr or answer.stdout).strip().splitlines() or ["no reason was given"]
        raise UnavailableError(f"The {purpose} classes cannot be compiled: {said[0]}")
    jar = work / "made.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in made:
            archive.write(file, str(file.relative_to(classes)))
    return jar
