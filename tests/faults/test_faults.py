"""The fault campaign: whatever happens to a service, its queries come to the same.

`make test-faults` runs it: FAULTS of them (200), in runs of 50 whose seeds follow SEED, under the
GUARANTEE, of the KINDS (all). A run has one half of the queries or the other, as its seed is even
or odd, or those of QUERIES. One that failed is run again alone by its seed:
`make test-faults FAULTS=50 SEED=…`.
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
GUARANTEE = os.environ.get("GUARANTEE") or "at_least_once"
GIVEN = os.environ["QUERIES"].split(",") if os.environ.get("QUERIES") else None

_ALL: list[Fault] = []


@pytest.mark.parametrize("number", range(-(-FAULTS // IN_A_RUN)))
def test_queries_come_to_the_same_as_an_undisturbed_twin(tmp_path, seed, number):
    faults = min(IN_A_RUN, FAULTS - number * IN_A_RUN)
    queries = GIVEN or HALVES[(seed + number) % 2]
    with Campaign(tmp_path, seed + number, GUARANTEE, queries) as campaign:
        try:
            campaign.run(faults, CHOSEN)
        finally:
            _ALL.extend(campaign.faults)
    print(f"\nSo far, {GUARANTEE}:\n\n{table(_ALL)}\n")


# What `make test` has the time for: mostly faults that take seconds to recover from.
OFTEN = ("worker",) * 4 + ("pause",) * 3 + ("server",) * 2
BRIEF_KINDS = (*OFTEN, "restart", "registry", "frozen-broker")


def test_brief_queries_come_to_the_same_as_an_undisturbed_twin(tmp_path):
    with Campaign(tmp_path, 21, "at_least_once", BRIEF) as campaign:
        campaign.run(len(BRIEF_KINDS), BRIEF_KINDS)


def test_kinds_are_known():
    assert not set(CHOSEN) - KINDS.keys(), f"KINDS can be: {', '.join(KINDS)}"
