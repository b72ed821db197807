"""Random values of Avro types, as the schema's annotations want them.

The annotations are those of the Avro random generator, which ksql-datagen used: options,
iteration, range, length, regex, kind, prefix, suffix, keys, odds, position, distribution. Values
are in the representation of the SQL types that the Avro types stand for.
"""

from __future__ import annotations

import json
import re
import string
import uuid
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from rstr import Rstr

from headrace.datagen.annotations import Annotations
from headrace.formats.avro.columns_of_schema import member_name
from headrace.model.errors import HeadraceError
from headrace.schemas import avro

Make = Callable[[], Any]

_LETTERS = string.ascii_letters + string.digits
_SPANS = {"int": (-(2**31), 2**31), "long": (-(2**63), 2**63)}
_STEPS = ("start", "restart", "step", "initial")
_BOUNDS = ("min", "max")
# So often a text is made from its regular expression before its length is called impossible.
_TRIES = 10_000
_FIRST_NAMES = ("Ada", "Alan", "Barbara", "Edsger", "Grace", "Katherine", "Niklaus", "Radia")
_LAST_NAMES = ("Dijkstra", "Hopper", "Johnson", "Liskov", "Lovelace", "Perlman", "Turing", "Wirth")


class ValueMaker:
    """Makes values from one source of chance: the same seed makes the same values. Files of options
    are found from `directory` on."""

    def __init__(self, random: Random, directory: Path) -> None:
        self._random = random
        self._directory = directory
        self._texts = Rstr(random)

    def of(
        self, type_: avro.AvroType, where: str = "schema", field: avro.AvroField | None = None
    ) -> Make:
        """What makes values of the type; HeadraceError for annotations that make no sense."""
        wanted = Annotations.of(where, type_, field)
        if wanted.has("options"):
            return self._option(type_, wanted)
        if wanted.has("iteration"):
            return _iteration(type_, wanted)
        match type_:
            case avro.Record():
                return self._record(type_, where)
            case avro.Array(items=items):
                return self._array(self.of(items, f"{where}[]"), wanted)
            case avro.Map(values=values):
                return self._map(self.of(values, f"{where}{{}}"), wanted)
            case avro.Union():
                return self._union(type_, wanted)
            case avro.Enum(symbols=symbols):
                return lambda: self._random.choice(symbols)
        if type_.is_decimal:
            return self._decimal(type_)
        return self._primitive(type_, wanted)

    # ------------------------------------------------------------------ plain values

    def _primitive(self, type_: avro.AvroType, wanted: Annotations) -> Make:
        match type_.kind:
            case "null":
                return lambda: None
            case "boolean":
                odds = wanted.fraction("odds")
                return lambda: self._random.random() < (0.5 if odds is None else odds)
            case "int" | "long":
                return self._whole(type_.kind, wanted)
            case "float" | "double":
                return self._fractional(wanted)
            case "bytes":
                least, most = wanted.length()
                return lambda: self._random.randbytes(self._random.randint(least, most))
            case "fixed":
                assert isinstance(type_, avro.Fixed)
                return lambda: self._random.randbytes(type_.size)
        return self._text(wanted)

    def _whole(self, kind: str, wanted: Annotations) -> Make:
        low, high = _SPANS[kind]
        least, below = (wanted.whole("range", bound, _BOUNDS) for bound in _BOUNDS)
        least, below = low if least is None else least, high if below is None else below
        if not low <= least < below <= high:
            raise wanted.error(f"'range' must have its min below its max, both of type {kind}.")
        return lambda: self._random.randrange(least, below)

    def _fractional(self, wanted: Annotations) -> Make:
        if not wanted.has("range"):
            return self._random.random
        least, below = (wanted.number("range", bound, _BOUNDS) for bound in _BOUNDS)
        low = -1.7e308 if least is None else float(least)
        high = 1.7e308 if below is None else float(below)
        if low >= high:
            raise wanted.error("'range' must have its min below its max.")

        def make() -> float:
            share = self._random.random()
            return low * (1 - share) + high * share

        return make

    def _decimal(self, type_: avro.AvroType) -> Make:
        precision, scale = type_.number("precision", 64), type_.number("scale")
        most = 10**precision - 1
        return lambda: Decimal(self._random.randint(-most, most)).scaleb(-scale)

    def _text(self, wanted: Annotations) -> Make:
        make = self._bare_text(wanted)
        before, after = wanted.text("prefix"), wanted.text("suffix")
        return (lambda: f"{before}{make()}{after}") if before or after else make

    def _bare_text(self, wanted: Annotations) -> Make:
        if wanted.has("regex"):
            return self._matching(wanted.text("regex"), wanted)
        if wanted.has("kind"):
            return self._of_kind(wanted)
        least, most = wanted.length()
        return lambda: "".join(self._random.choices(_LETTERS, k=self._random.randint(least, most)))

    def _matching(self, regex: str, wanted: Annotations) -> Make:
        try:
            re.compile(regex)
        except re.error as problem:
            raise wanted.error(f"'regex' cannot be read: {problem}.") from None
        if not wanted.has("length"):
            return lambda: self._texts.xeger(regex)
        least, most = wanted.length()

        def make() -> str:
            for _ in range(_TRIES):
                if least <= len(made := self._texts.xeger(regex)) <= most:
                    return made
            raise wanted.error(f"'regex' gives hardly a text of {least} to {most} characters.")

        return make

    def _of_kind(self, wanted: Annotations) -> Make:
        kinds: dict[str, Make] = {
            "uuid": lambda: str(uuid.UUID(int=self._random.getrandbits(128), version=4)),
            "name": lambda: " ".join(self._name()),
            "email": lambda: ".".join(self._name()).lower() + "@example.com",
        }
        if wanted.text("kind") not in kinds:
            raise wanted.error(f"'kind' must be one of {', '.join(kinds)}.")
        return kinds[wanted.text("kind")]

    def _name(self) -> tuple[str, str]:
        return self._random.choice(_FIRST_NAMES), self._random.choice(_LAST_NAMES)

    # ------------------------------------------------------------------ values of values

    def _record(self, type_: avro.Record, where: str) -> Make:
        fields = {f.name: self.of(f.type, f"{where}.{f.name}", f) for f in type_.fields}
        return lambda: {name: make() for name, make in fields.items()}

    def _array(self, make: Make, wanted: Annotations) -> Make:
        least, most = wanted.length()
        return lambda: [make() for _ in range(self._random.randint(least, most))]

    def _map(self, make: Make, wanted: Annotations) -> Make:
        least, most = wanted.length()
        keys = Annotations.read(wanted.where, wanted.given.get("keys"))
        key = self.of(avro.Primitive((("arg.properties", dict(keys)),), "string"), wanted.where)
        return lambda: {key(): make() for _ in range(self._random.randint(least, most))}

    def _union(self, type_: avro.Union, wanted: Annotations) -> Make:
        places = [str(i) for i in range(len(type_.branches))]
        shares = [wanted.number("distribution", place, places) or 0.0 for place in places]
        if not wanted.has("distribution"):
            shares = [1.0] * len(places)
        if wanted.has("position"):
            shares = [float(wanted.given["position"] == i) for i in range(len(places))]
        if not any(shares) or min(shares) < 0:
            raise wanted.error("'position' or 'distribution' names no branch of the union.")
        branches = [self._branch(type_, b, wanted.where) for b in type_.branches]
        return lambda: self._random.choices(branches, shares)[0]()

    def _branch(self, union: avro.Union, branch: avro.AvroType, where: str) -> Make:
        """A branch's values: as they are where the others are null, else a struct of all."""
        make = self.of(branch, where)
        if branch.kind == "null" or union.not_null is not None:
            return make
        names = [member_name(b) for b in union.branches if b.kind != "null"]
        own = member_name(branch)
        return lambda: {name: make() if name == own else None for name in names}

    # ------------------------------------------------------------------ options

    def _option(self, type_: avro.AvroType, wanted: Annotations) -> Make:
        found = wanted.given["options"]
        if isinstance(found, dict):
            found = self._file(wanted)
            wanted = Annotations(wanted.where, {**wanted.given, "options": found})
        options = [_option(type_, given, wanted) for given in wanted.choices("options")]
        return lambda: self._random.choice(options)

    def _file(self, wanted: Annotations) -> list[Any]:
        place = wanted.object("options", ("file", "encoding"))
        if place.get("encoding") != "json" or not isinstance(place.get("file"), str):
            raise wanted.error("'options' of a file want its name and the encoding json.")
        path = self._directory / place["file"]
        try:
            return list(_documents(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as problem:
            raise wanted.error(f"the file of options {path} cannot be read: {problem}") from None


def _documents(text: str) -> Iterator[Any]:
    """The values of a JSON list, or of JSON values one after another."""
    if text.lstrip().startswith("["):
        yield from json.loads(text)
        return
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        yield value


_FITTING: Mapping[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": (int, float),
    "double": (int, float),
    "string": str,
    "enum": str,
    "bytes": str,
    "fixed": str,
    "array": list,
    "map": dict,
    "record": dict,
}


def _option(type_: avro.AvroType, given: Any, wanted: Annotations) -> Any:
    """A value that the schema names, in our representation."""
    if isinstance(type_, avro.Union):
        return _option_of_union(type_, given, wanted)
    if type_.kind == "null":
        fits = given is None
    else:
        fits = isinstance(given, _FITTING[type_.kind]) and (
            type_.kind == "boolean" or not isinstance(given, bool)
        )
    if not fits:
        raise wanted.error(f"the option {json.dumps(given)} is not of type {type_.kind}.")
    match type_:
        case avro.Record():
            return {f.name: _option(f.type, given.get(f.name), wanted) for f in type_.fields}
        case avro.Array(items=items):
            return [_option(items, item, wanted) for item in given]
        case avro.Map(values=values):
            return {key: _option(values, item, wanted) for key, item in given.items()}
        case avro.Enum(symbols=symbols) if given not in symbols:
            raise wanted.error(f"the option '{given}' is not a symbol of {type_.name}.")
    if type_.kind in ("float", "double"):
        return float(given)
    return given.encode() if type_.kind in ("bytes", "fixed") else given


def _option_of_union(type_: avro.Union, given: Any, wanted: Annotations) -> Any:
    for branch in type_.branches:
        try:
            found = _option(branch, given, wanted)
        except HeadraceError:
            continue
        if branch.kind == "null" or type_.not_null is not None:
            return found
        names = [member_name(b) for b in type_.branches if b.kind != "null"]
        return {name: found if name == member_name(branch) else None for name in names}
    raise wanted.error(f"the option {json.dumps(given)} is of no branch of the union.")


# ---------------------------------------------------------------------------- iterations


def _iteration(type_: avro.AvroType, wanted: Annotations) -> Make:
    if type_.kind == "boolean":
        return _alternating(wanted)
    if type_.kind not in ("int", "long", "float", "double", "string"):
        raise wanted.error(f"'iteration' is for numbers, booleans and texts, not {type_.kind}.")
    fractional = type_.kind in ("float", "double")
    get = wanted.number if fractional else wanted.whole
    start, restart, step, initial = (get("iteration", name, _STEPS) for name in _STEPS)
    if start is None:
        raise wanted.error("'iteration' must have a start.")
    if step is None:
        step = -1 if restart is not None and restart < start else 1
    if step == 0 or (restart is not None and (restart - start) * step <= 0):
        raise wanted.error("'iteration' must lead by its step from its start to its restart.")
    numbers = _counted(start, restart, step, start if initial is None else initial)
    before, after = wanted.text("prefix"), wanted.text("suffix")
    if type_.kind == "string":
        return lambda: f"{before}{next(numbers)}{after}"
    return lambda: float(next(numbers)) if fractional else next(numbers)


def _alternating(wanted: Annotations) -> Make:
    start = wanted.object("iteration", ("start",)).get("start")
    if not isinstance(start, bool):
        raise wanted.error("'iteration' of a boolean must have a start, true or false.")
    values = _switched(start)
    return lambda: next(values)


def _switched(value: bool) -> Iterator[bool]:
    while True:
        yield value
        value = not value


def _counted(
    start: float, restart: float | None, step: float, value: float
) -> Iterator[int | float]:
    while True:
        yield value
        value += step
        if restart is not None and (value - restart) * step >= 0:
            value = start
