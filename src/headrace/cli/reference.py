"""`headrace reference`: functions, settings and WITH properties as Markdown, as declared."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence

from headrace.cli.commands import OK
from headrace.functions.declare.declaration import (
    Example,
    Function,
    FunctionKind,
    LambdaArgument,
    Overload,
    Typed,
)
from headrace.functions.declare.signatures import parameter_type_text
from headrace.functions.registry import REGISTRY
from headrace.model.setting import Fate, Setting, Value
from headrace.model.settings import FAMILIES, SETTINGS
from headrace.plan.sources.properties import (
    COMMON,
    DECLARED,
    INSERTED,
    STARTING,
    WithProperty,
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=PAGES, help="the page to print")


def run(args: argparse.Namespace) -> int:
    print(PAGES[args.what]())
    return OK


# ---------------------------------------------------------------------------------- functions


def functions() -> str:
    builtin = [f for f in REGISTRY.all() if f.path == "internal"]
    lines = [
        "# Functions",
        "",
        f"All {len(builtin)} of them, from their declarations (`make docs`). A server"
        " tells the same with `SHOW FUNCTIONS` and `DESCRIBE FUNCTION`; [user"
        " functions](user-functions.md) come on top. The examples are run by the tests;"
        " those of aggregates show the values of a group with strokes between them.",
    ]
    for category in sorted({f.category.value for f in builtin}):
        lines += ["", f"## {category.title()}"]
        for function in sorted(builtin, key=lambda f: f.name):
            if function.category.value == category:
                lines += ["", *_function(function)]
    return "\n".join(lines)


def _function(function: Function) -> Iterator[str]:
    yield f"### {function.name}"
    yield ""
    yield f"{function.description} ({function.kind.value.lower()})"
    yield ""
    for overload in function.overloads:
        yield f"- `{_signature(function.name, overload)}`" + (
            f": {overload.description}" if overload.description else ""
        )
        for parameter in overload.signature.parameters:
            if parameter.description:
                yield f"  - `{parameter.name}`: {parameter.description}"
    shown = [example for example in function.examples if not example.varies]
    if shown:
        yield ""
        aggregate = function.kind is FunctionKind.AGGREGATE
        yield "```sql"
        yield from (_example(function.name, example, aggregate) for example in shown)
        yield "```"


def _signature(name: str, overload: Overload) -> str:
    signature = overload.signature
    parameters = ", ".join(
        f"{p.name} {parameter_type_text(p.type)}{'...' if p.variadic else ''}"
        for p in signature.parameters
    )
    return f"{name}({parameters}) -> {parameter_type_text(signature.returns)}"


def _example(name: str, example: Example, aggregate: bool) -> str:
    """Of an aggregate, an argument is shown by the values of its column."""
    shown = [
        "/".join(map(_literal, a)) if aggregate and isinstance(a, (list, tuple)) else _literal(a)
        for a in example.args
    ]
    result = "fails" if example.fails else _literal(example.gives)
    return f"{name}({', '.join(shown)})  -- {result}"


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''").replace("\n", "\\n") + "'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case list() | tuple():
            return f"ARRAY[{', '.join(map(_literal, value))}]"
        case dict():
            pairs = (f"{_literal(k)} := {_literal(v)}" for k, v in value.items())
            return f"MAP({', '.join(pairs)})"
        case Typed():
            return f"CAST({_literal(value.value)} AS {value.type})"
        case LambdaArgument():
            return value.text
    return str(value)


# ----------------------------------------------------------------------------------- settings


def settings() -> str:
    known = sorted([*SETTINGS.values(), *FAMILIES.values()], key=lambda s: s.name)
    honoured = [s for s in known if s.fate is Fate.HONOURED]
    lines = [
        "# Settings",
        "",
        "From their declarations (`make docs`). A server reads them from its properties file and"
        " from `headrace start --set NAME=VALUE`; those of a session are also changed by `SET`, or"
        " sent with a request. Names that begin with `ksql.streams.` may leave that out. Settings"
        " of Kafka's clients (`security.protocol`, `sasl.…`, `ssl.…`) and of Spark (`spark.…`) are"
        " passed on; [Secured clusters](security.md) has those for TLS and logins, of Kafka, of the"
        " schema registry (`ksql.schema.registry.…`) and of Connect (`ksql.connect.…`).",
        "",
        "ksqlDB's properties files start Headrace: what it honours is in the first two tables, what"
        " becomes of the rest in the others. A setting without meaning is a line of warning at"
        " start. A name that nobody knows is one too, with the nearest that there is; `headrace"
        " start --strict` refuses it. `headrace check-config FILE` says the same of a file without"
        " starting anything.",
    ]
    lines += _settings_table("Of a server", [s for s in honoured if not s.editable])
    lines += _settings_table("Of a server, or of a session", [s for s in honoured if s.editable])
    lines += ["", "## ksqlDB's, by other names here", "", "| Name | Here |", "|---|---|"]
    for setting in known:
        if setting.fate is Fate.MAPPED:
            lines.append(f"| `{setting.name}` | `{setting.target}` |")
    lines += _reasons("ksqlDB's, without meaning here", Fate.WITHOUT_MEANING, known)
    lines += _reasons("ksqlDB's, refused", Fate.REFUSED, known)
    return "\n".join(lines)


def _settings_table(title: str, known: Sequence[Setting]) -> Iterator[str]:
    yield from ("", f"## {title}", "", "| Name | Default | What it does |", "|---|---|---|")
    for setting in known:
        limit = " A client may lower it, and not raise it." if setting.limit else ""
        yield f"| `{setting.name}` | {_default(setting)} | {_cell(setting.doc + limit)} |"


def _reasons(title: str, fate: Fate, known: Sequence[Setting]) -> Iterator[str]:
    yield from ("", f"## {title}", "", "| Name | Why |", "|---|---|")
    for setting in known:
        if setting.fate is fate:
            fine = "" if setting.harmless is None else f" `{_text(setting.harmless)}` is fine."
            yield f"| `{setting.name}` | {_cell(setting.doc + fine)} |"


def _default(setting: Setting) -> str:
    if setting.default is None or setting.default == "":
        return ""
    return f"`{_text(setting.default)}`"


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# --------------------------------------------------------------------------------- properties


def properties() -> str:
    declared = {name: p for name, p in DECLARED.items() if name not in COMMON}
    lines = ["# WITH properties", "", "From their declarations (`make docs`)."]
    lines += _table("Of CREATE STREAM and CREATE TABLE, also with AS SELECT", COMMON)
    lines += _table("Only of sources that are declared over a topic", declared)
    lines += _table("Of CREATE … AS SELECT and INSERT INTO … SELECT", STARTING)
    inserted = {name: p for name, p in INSERTED.items() if name not in STARTING}
    lines += _table("Of INSERT INTO … SELECT", inserted)
    return "\n".join(lines)


def _table(title: str, known: Mapping[str, WithProperty]) -> Iterator[str]:
    yield from ("", f"## {title}", "", "| Name | Value | What it says |", "|---|---|---|")
    for name, declared in sorted(known.items()):
        yield f"| `{name}` | {declared.kind} | {_cell(declared.doc)} |"


PAGES: Mapping[str, Callable[[], str]] = {
    "functions": functions,
    "settings": settings,
    "properties": properties,
}
