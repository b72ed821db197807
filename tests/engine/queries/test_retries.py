"""How often and for how long a query that cannot go on tries again."""

from __future__ import annotations

from headrace.engine.queries.retries import FIRST_PAUSE, MOST_PAUSE, Retries


def test_pauses_grow_up_to_the_longest_and_end_with_the_patience():
    retries, now, pauses = Retries(patience=60), 1000.0, []
    assert retries.pause(now) == 0
    while retries.failed(now):
        pauses.append(retries.pause(now))
        now += pauses[-1]
    assert pauses[:5] == [FIRST_PAUSE, 1.0, 2.0, 4.0, 8.0]
    assert set(pauses[5:]) == {MOST_PAUSE} and 60 <= now - 1000 < 60 + MOST_PAUSE


def test_who_went_on_begins_with_a_short_pause_and_all_patience():
    retries = Retries(patience=60)
    for now in (0.0, 10.0, 59.0):
        assert retries.failed(now)
    retries.went_on()
    assert retries.failed(1000.0) and retries.pause(1000.0) == FIRST_PAUSE
