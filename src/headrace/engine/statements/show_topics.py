"""SHOW TOPICS."""

from __future__ import annotations

import re

from headrace.engine.statements.handling import StatementContext, handles
from headrace.model.entities import (
    Entity,
    TopicInfo,
    TopicInfoExtended,
    TopicList,
    TopicListExtended,
)
from headrace.sql import ast

# Topics that are nobody's data; SHOW ALL TOPICS has them too.
_HIDDEN = re.compile(
    r"_headrace.*|_confluent.*|__.*|_schemas|connect-(configs|offsets|status|statuses)"
)


@handles(ast.ListTopics)
def _topics(statement: ast.ListTopics, context: StatementContext) -> Entity:
    admin = context.env.admin
    found = admin.topics(include_internal=statement.all)
    names = [t for t in sorted(found) if statement.all or not _HIDDEN.fullmatch(t)]
    if not statement.extended:
        return TopicList(context.text, tuple(TopicInfo(t, found[t].replicas) for t in names))
    readers = admin.readers()
    rows = (
        TopicInfoExtended(
            t, found[t].replicas, sum(readers.get(t, {}).values()), len(readers.get(t, {}))
        )
        for t in names
    )
    return TopicListExtended(context.text, tuple(rows))
