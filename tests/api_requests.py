"""Requests that the API's own description allows, and some that it does not."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from urllib.parse import quote

from hypothesis import strategies as st

_WORDS = """
    SELECT * FROM S T WHERE ID = 'a' 1 1.5 AND OR NOT ( ) , ; EMIT CHANGES LIMIT 1 SHOW STREAMS
    DESCRIBE EXPLAIN PRINT INSERT INTO VALUES SET DEFINE x ${x} UNSET DROP STREAM TABLE IF EXISTS
    CREATE TYPE AS STRUCT< > ARRAY[ ] MAP( := -> => "q" `b` '' -- /* */ INTERVAL COUNT(*) GROUP BY
    WINDOW TUMBLING SIZE SECONDS CAST NULL ASSERT TOPIC TERMINATE ALTER ADD COLUMN é \0 ROWTIME
"""
TEXTS = st.lists(st.sampled_from(_WORDS.split()), max_size=12).map(" ".join) | st.text(max_size=40)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
# Of each type of the description.
MEMBERS = {
    "string": TEXTS,
    "integer": st.integers(-5, 5),
    "object": st.dictionaries(
        st.sampled_from(["auto.offset.reset", "ksql.service.id", "x", ""]), JUNK, max_size=3
    ),
    "array": st.lists(TEXTS, max_size=3),
}


@dataclass(frozen=True)
class ApiRequest:
    method: str
    path: str
    content: bytes | None
    headers: dict[str, str]


@st.composite
def api_requests(draw: st.DrawFn, document: dict, without: frozenset[str] = frozenset()):
    path = draw(st.sampled_from(sorted(set(document["paths"]) - without)))
    ((method, operation),) = document["paths"][path].items()
    segments = st.text(min_size=1, max_size=20).filter(lambda text: text not in (".", ".."))
    for name in re.findall(r"{\w+}", path):
        path = path.replace(name, quote(draw(segments), safe=""))
    headers = {"accept": draw(_one_of(operation["responses"]["200"]["content"]))}
    content = None
    if "requestBody" in operation:
        bodies = operation["requestBody"]["content"]
        headers["content-type"] = draw(_one_of(bodies))
        content = draw(_content(next(iter(bodies.values()))["schema"]))
    return ApiRequest(method.upper(), path, content, headers)


def _one_of(content_types):
    return st.sampled_from([*content_types, "*/*", "text/html"])


def _content(schema):
    if schema["type"] == "string":
        rows = st.lists(JUNK.map(json.dumps) | TEXTS, max_size=4)
        targets = st.sampled_from(['{"target": "S"}', '{"target": "T"}', "{}", "["])
        return st.tuples(targets, rows).map(lambda t: "\n".join([t[0], *t[1]]).encode())
    members = {
        name: MEMBERS[declared["type"]] | JUNK for name, declared in schema["properties"].items()
    }
    required = {name: members.pop(name) for name in schema["required"]}
    objects = st.fixed_dictionaries(required, optional=members)
    return (objects | JUNK).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=50)
