"""What planning may ask of the catalog, all of it known beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from headrace.model.sources import Source, SourceKind
from headrace.model.types import SqlType
from headrace.plan.language.messages import joined


class CatalogView(Protocol):
    def source(self, name: str) -> Source | None:
        """The stream or table of that name."""

    def sources(self) -> Iterable[Source]:
        """All streams and tables."""

    def type(self, name: str) -> SqlType | None:
        """The custom type of that name."""

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None when that is not known."""


def alternatives(view: CatalogView, name: str, kind: SourceKind | None = None) -> str:
    """A hint to sources whose names differ in case only, for a name that does not exist; to those
    of a kind, if only such could be meant."""
    meant = (s for s in view.sources() if kind in (None, s.kind))
    similar = sorted((s for s in meant if s.name.upper() == name.upper()), key=lambda s: s.name)
    if not similar:
        return ""
    quotes = "Hint: wrap the source name in double quotes to make it case-sensitive."
    if len(similar) > 1:
        named = [f'"{s.name}" ({s.kind.value})' for s in similar]
        last = " or " if len(named) == 2 else ", or "
        return f"\nDid you mean {joined(named, last)}? {quotes}"
    (only,) = similar
    if only.name != only.name.upper():
        return f'\nDid you mean "{only.name}"? {quotes}'
    return f"\nDid you mean {only.name}? Hint: try removing double quotes from the source name."


def already_exists(kind: SourceKind, name: str, existing: Source) -> str:
    """Why a source cannot be made; `name` is in the quotes that the message has."""
    return (
        f"Cannot add {kind.value.lower()} {name}: "
        f"A {existing.kind.value.lower()} with the same name already exists"
    )
