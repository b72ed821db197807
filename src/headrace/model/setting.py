"""What one setting is: how its text is read, who may change it, and what becomes of it here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

Value = str | int | float | bool | None


class Fate(Enum):
    """What becomes of a setting that a server is started with."""

    HONOURED = "honoured"
    MAPPED = "mapped"
    WITHOUT_MEANING = "without meaning"
    REFUSED = "refused"


@dataclass(frozen=True)
class Setting:
    """A setting. `editable`: by SET and by a request's properties, for the statements that follow.
    `limit`: it protects the server, so a client may lower it, but not raise it. `client`: Kafka's
    clients get it.

    A `fate` other than honoured has its reason in `doc`. `target` is the name that it is mapped to,
    `harmless` a value that only says what is so anyway: nobody is warned of it, or refused. A name
    that ends in `.*` stands for all that begin so.
    """

    name: str
    parse: Callable[[str], Value]
    default: Value
    doc: str
    editable: bool = False
    secret: bool = False
    limit: bool = False
    client: bool = False
    fate: Fate = Fate.HONOURED
    target: str | None = None
    harmless: Value = None


def boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("Expected value to be either true or false")
    return lowered == "true"


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(f"String must be one of: {', '.join(choices)}")
        return text.lower()

    return parse


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError("Value must be at least 1")
    return number
