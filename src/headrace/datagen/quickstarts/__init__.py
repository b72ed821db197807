"""The schemas that ksql-datagen knew by name, and where their records went."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.model.errors import HeadraceError


@dataclass(frozen=True)
class Quickstart:
    file: str
    topic: str
    key: str

    @property
    def schema(self) -> Path:
        return Path(__file__).parent / self.file

    def topic_name(self, value_format: str) -> str:
        return f"{self.topic}_kafka_topic_{value_format.lower()}"


QUICKSTARTS = {
    "clickstream": Quickstart("clickstream.avsc", "clickstream", "ip"),
    "clickstream_codes": Quickstart("clickstream_codes.avsc", "clickstream", "code"),
    "clickstream_users": Quickstart("clickstream_users.avsc", "webusers", "user_id"),
    "orders": Quickstart("orders.avsc", "orders", "orderid"),
    "pageviews": Quickstart("pageviews.avsc", "pageviews", "viewtime"),
    "ratings": Quickstart("ratings.avsc", "ratings", "rating_id"),
    "users": Quickstart("users.avsc", "users", "userid"),
    "users_": Quickstart("users_array_map.avsc", "users", "userid"),
}


def quickstart(name: str) -> Quickstart:
    """The quickstart of that name, in any case."""
    found = QUICKSTARTS.get(name.lower())
    if found is None:
        raise HeadraceError(f"There is no quickstart '{name}'; there are {', '.join(QUICKSTARTS)}.")
    return found
