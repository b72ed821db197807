"""KLIP-3's properties of a WITH clause, in every combination."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

Flag = bool | None


@dataclass(frozen=True)
class Wraps:
    """The three properties; None: not given."""

    keys: Flag = None
    values: Flag = None
    fields: Flag = None

    @property
    def is_valid(self) -> bool:
        return self.fields is None or (self.keys is None and self.values is None)

    def of(self, side: Literal["key", "value"]) -> Flag:
        own = self.keys if side == "key" else self.values
        return self.fields if own is None else own

    @property
    def text(self) -> str:
        given = {
            "WRAP_SINGLE_KEYS": self.keys,
            "WRAP_SINGLE_VALUES": self.values,
            "WRAP_SINGLE_FIELDS": self.fields,
        }
        return ", ".join(f"{name}={flag}" for name, flag in given.items() if flag is not None)


FLAGS: tuple[Flag, ...] = (None, True, False)
WRAPS = tuple(Wraps(*flags) for flags in itertools.product(FLAGS, repeat=3))
VALID = tuple(wraps for wraps in WRAPS if wraps.is_valid)
