"""Limits protect the server: a client may lower them."""

from __future__ import annotations

import pytest

from headrace.engine.statements.request_session import Session
from headrace.model.errors import StatementError
from headrace.model.settings import Settings

LIMIT = "ksql.streams.max.offsets.per.trigger"


@pytest.mark.parametrize("name", [LIMIT, "max.offsets.per.trigger"])
@pytest.mark.parametrize("value", [500_001, "1000000000"])
def test_a_limit_is_not_raised(name, value):
    with pytest.raises(StatementError, match="this server's limit is 500000, which only its own"):
        Session({name: value}).settings(Settings())


def test_a_limit_is_lowered_and_the_servers_own_counts():
    assert Session({LIMIT: "10"}).settings(Settings())[LIMIT] == 10
    assert Session({LIMIT: 2_000_000}).settings(Settings({LIMIT: 3_000_000}))[LIMIT] == 2_000_000


def test_what_has_no_limit_is_free():
    name = "ksql.functions.collect_list.limit"
    assert Session({name: 5}).settings(Settings())[name] == 5
    with pytest.raises(StatementError, match="limit is 3"):
        Session({name: 5}).settings(Settings({name: 3}))
