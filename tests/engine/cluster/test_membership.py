"""What servers report of themselves and know of each other."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace

import pytest

from headrace.engine.cluster.lease import Member, QueryReport, Report
from headrace.engine.cluster.membership import Membership
from headrace.model.entities import QueryState
from headrace.model.settings import Settings


def membership(url=None, members=(), holder=None, **settings):
    named = {k.replace("__", "."): v for k, v in settings.items()}
    return Membership(
        lambda: Settings(named),
        {} if url is None else {"server": url},
        SimpleNamespace(),
        SimpleNamespace(active=False, all_known=list),
        SimpleNamespace(members=lambda: members, holding=lambda: holder),
    )


@pytest.mark.parametrize(
    ("url", "settings", "address"),
    [
        (None, {}, ""),
        ("http://127.0.0.1:8088", {}, "127.0.0.1:8088"),
        ("https://0.0.0.0:8088", {}, f"{socket.gethostname()}:8088"),
        ("http://[::]:8088", {}, f"{socket.gethostname()}:8088"),
        ("http://0.0.0.0:1", {"ksql__advertised__listener": "http://shop:8088/"}, "shop:8088"),
    ],
)
def test_a_server_is_known_by_where_it_is_reached(url, settings, address):
    assert membership(url, **settings).address == address


def test_the_status_names_the_living_and_the_dead():
    here, gone = (
        Member(name, Report(f"{name}:8088"), 1, time.monotonic() - age)
        for name, age in (("here", 0), ("gone", 60))
    )
    known = [(here, True), (gone, False)]
    status = membership("http://here:8088", known).cluster_status()
    hosts = status.to_json()["clusterStatus"]
    assert {host: told["hostAlive"] for host, told in hosts.items()} == {
        "here:8088": True,
        "gone:8088": False,
    }
    ago = hosts["here:8088"]["lastStatusUpdateMs"] - hosts["gone:8088"]["lastStatusUpdateMs"]
    assert 59_000 < ago < 61_000


def test_a_server_that_runs_no_queries_tells_what_the_other_says():
    query = SimpleNamespace(id="CSAS_A_1", planned="a plan")
    assert membership("http://b:1").status(query)[1] is QueryState.UNRESPONSIVE
    report = Report("a:1", queries={"CSAS_A_1": QueryReport("ERROR", "no such topic", 5)})
    host, state, (error,) = membership(holder=Member("a", report, 1, 0.0)).status(query)
    assert (host, state) == ("a:1", QueryState.ERROR)
    assert (error.error_message, error.timestamp) == ("no such topic", 5)
