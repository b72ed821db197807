"""The client that reads a push query as fast as it can."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fake_server import running
from headrace.bench.workloads.push_rows import by_headrace
from headrace.model.errors import HeadraceError


def test_rows_are_counted_until_the_last_has_come():
    with running() as (engine, url):
        at = SimpleNamespace(server=SimpleNamespace(url=url))
        reading = by_headrace(at, "S", 2)
        assert 0 < reading.first <= reading.last
        assert engine.requests[0].text.endswith("WHERE amount > 100 EMIT CHANGES LIMIT 2;")
        with pytest.raises(HeadraceError, match="rows came, not 3"):
            by_headrace(at, "NO_SUCH", 3)
