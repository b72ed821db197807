"""The fault campaign: whatever happens to a service, its queries come to the same.

`make test-faults` runs it: FAULTS of them (200), half of them under each GUARANTEE, in runs of 50
whose seeds follow SEED, of the KINDS (all). A run has one half of the queries or the other, as its
seed is even or odd, or those of QUERIES. It says by which command it is run again alone.
"""

from __future__ import annotations

import os

import pytest
from campaign import Campaign, Fault, table
from kinds import KINDS
from load import BRIEF, HALVES

pytestmark = pytest.mark.heavy

IN_A_RUN = 50
FAULTS = int(os.environ.get("FAULTS") or 200)
CHOSEN = (os.environ.get("KINDS") or ",".join(KINDS)).split(",")
GUARANTEES = (os.environ.get("GUARANTEE") or "at_least_once,exactly_once_v2").split(",")
QUERIES = os.environ["QUERIES"].split(",") if os.environ.get("QUERIES") else None

_ALL: dict[str, list[Fault]] = {}


def runs() -> list[tuple[str, int]]:
    """The guarantee of each run, and how many faults it has."""
    each = -(-FAULTS // len(GUARANTEES))
    return [(g, min(IN_A_RUN, each - i)) for g in GUARANTEES for i in range(0, each, IN_A_RUN)]


@pytest.mark.parametrize(
    ("number", "guarantee", "faults"), [(i, *run) for i, run in enumerate(runs())]
)
def test_queries_come_to_the_same_as_an_undisturbed_twin(tmp_path, seed, number, guarantee, faults):
    seed += number
    chosen = {name: os.environ[name] for name in ("KINDS", "QUERIES") if os.environ.get(name)}
    told = {"FAULTS": faults, "SEED": seed, "GUARANTEE": guarantee, **chosen}
    print("\nmake test-faults", *(f"{name}={value}" for name, value in told.items()))
    with Campaign(tmp_path, seed, guarantee, QUERIES or HALVES[seed % 2]) as campaign:
        try:
            campaign.run(faults, CHOSEN)
        finally:
            _ALL.setdefault(guarantee, []).extend(campaign.faults)
    for name, made in _ALL.items():
        print(f"\nSo far, {name}:\n\n{table(made)}")


# What `make test` has the time for: mostly faults that take seconds to recover from.
OFTEN = ("worker",) * 4 + ("pause",) * 3 + ("server",) * 2
BRIEF_KINDS = (*OFTEN, "restart", "registry", "frozen-broker")


def test_brief_queries_come_to_the_same_as_an_undisturbed_twin(tmp_path):
    with Campaign(tmp_path, 21, "at_least_once", BRIEF) as campaign:
        campaign.run(len(BRIEF_KINDS), BRIEF_KINDS)


def test_kinds_are_known():
    assert not set(CHOSEN) - KINDS.keys(), f"KINDS can be: {', '.join(KINDS)}"
