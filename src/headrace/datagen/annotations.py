"""The annotations of a schema (`arg.properties`) by which its values are made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.model.errors import HeadraceError
from headrace.schemas import avro

PROPERTY = "arg.properties"
# How long texts, bytes, arrays and maps are that say nothing of it.
DEFAULT_LENGTH = (8, 16)
# How much longer than its least length something may be that has no greatest one.
OPEN_LENGTH = 8

_NAMES = frozenset(
    {
        *("options", "iteration", "range", "length", "regex", "kind", "prefix", "suffix"),
        *("keys", "odds", "position", "distribution"),
    }
)
# Of these at most one says what the values are.
_EXCLUSIVE = ("options", "iteration", "range", "regex", "kind")


@dataclass(frozen=True)
class Annotations:
    """The annotations of one place in a schema; `where` names the place in errors."""

    where: str
    given: Mapping[str, Any]

    @staticmethod
    def of(where: str, type_: avro.AvroType, field: avro.AvroField | None = None) -> Annotations:
        """Those of a type, and of the field that has it: a union cannot bear any itself."""
        outer = Annotations.read(where, dict(field.props).get(PROPERTY)) if field else {}
        return Annotations(
            where, {**outer, **Annotations.read(where, dict(type_.props).get(PROPERTY))}
        )

    @staticmethod
    def read(where: str, given: object) -> Mapping[str, Any]:
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise HeadraceError(f"{where}: {PROPERTY} must be an object.")
        unknown = [name for name in given if name not in _NAMES]
        if unknown:
            known = ", ".join(sorted(_NAMES))
            raise HeadraceError(f"{where}: {PROPERTY} knows no '{unknown[0]}'; it knows {known}.")
        chosen = [name for name in _EXCLUSIVE if name in given]
        if len(chosen) > 1:
            raise HeadraceError(f"{where}: '{chosen[0]}' and '{chosen[1]}' exclude each other.")
        return given

    def error(self, text: str) -> HeadraceError:
        return HeadraceError(f"{self.where}: {text}")

    def has(self, name: str) -> bool:
        return name in self.given

    def text(self, name: str) -> str:
        found = self.given.get(name, "")
        if not isinstance(found, str):
            raise self.error(f"'{name}' must be a text.")
        return found

    def fraction(self, name: str) -> float | None:
        found = self._number(self.given, name, name)
        if found is not None and not 0 <= found <= 1:
            raise self.error(f"'{name}' must be between 0 and 1.")
        return found

    def object(self, name: str, members: Collection[str]) -> Mapping[str, Any]:
        found = self.given.get(name, {})
        if not isinstance(found, dict) or not set(found) <= set(members):
            raise self.error(f"'{name}' must be an object of {', '.join(members)}.")
        return found

    def number(self, name: str, member: str, members: Collection[str]) -> int | float | None:
        return self._number(self.object(name, members), member, f"{name}.{member}")

    def whole(self, name: str, member: str, members: Collection[str]) -> int | None:
        found = self.number(name, member, members)
        if isinstance(found, float) and not found.is_integer():
            raise self.error(f"'{name}.{member}' must be a whole number.")
        return None if found is None else int(found)

    def length(self) -> tuple[int, int]:
        """The least and the greatest length."""
        found = self.given.get("length")
        if found is None:
            return DEFAULT_LENGTH
        if not isinstance(found, dict):
            exact = self._number(self.given, "length", "length")
            assert exact is not None
            return self._lengths(int(exact), int(exact))
        least = self.whole("length", "min", ("min", "max"))
        most = self.whole("length", "max", ("min", "max"))
        if least is None and most is None:
            raise self.error("'length' must be a number, or have min, max or both.")
        low = least or 0
        return self._lengths(low, low + OPEN_LENGTH if most is None else most)

    def _lengths(self, least: int, most: int) -> tuple[int, int]:
        if not 0 <= least <= most:
            raise self.error("'length' must be 0 or more, its min not above its max.")
        return least, most

    def choices(self, name: str) -> Sequence[Any]:
        found = self.given[name]
        if not isinstance(found, list) or not found:
            raise self.error(f"'{name}' must be a list with at least one element.")
        return found

    def _number(self, given: Mapping[str, Any], key: str, shown: str) -> int | float | None:
        found = given.get(key)
        if found is not None and (isinstance(found, bool) or not isinstance(found, int | float)):
            raise self.error(f"'{shown}' must be a number.")
        return found
