"""Whether ksqlDB still runs its queries."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.kafka.admin import TopicAdmin


def active_groups(admin: TopicAdmin, groups: Iterable[str]) -> list[str]:
    """Those of the consumer groups that have members now."""
    wanted = set(groups)
    reading = {group for by_group in admin.readers().values() for group in by_group}
    return sorted(wanted & reading)
