"""Medians, ratios, bars, and what is read back of a run."""

import pytest

from headrace.bench import report
from headrace.bench.figures import (
    BY_HAND,
    HEADRACE,
    STREAMS,
    Absent,
    Bar,
    Results,
    Row,
    Samples,
    percentile,
    ratio,
    samples,
)


def row(name, *ours, bars=(), **others):
    cells = {HEADRACE: samples(ours)}
    cells |= {side: samples(values) for side, values in others.items()}
    return Row(name, name.capitalize(), "records/s", cells, tuple(bars))


def test_median_and_spread():
    figure = Samples((3.0, 1.0, 2.0))
    assert (figure.low, figure.median, figure.high) == (1.0, 2.0, 3.0)


def test_a_figure_without_values_is_none():
    with pytest.raises(ValueError, match="at least one"):
        Samples(())


def test_a_ratio_is_the_median_of_the_ratios_of_each_repeat():
    # The second repeat was slow for both: the ratio does not suffer.
    assert ratio(Samples((100, 10, 90)), Samples((50, 5, 60))) == 2.0


def test_a_ratio_of_unlike_numbers_of_repeats_is_that_of_medians():
    assert ratio(Samples((10, 30)), Samples((10,))) == 2.0


def test_a_bar_against_a_side():
    good = row("a", 95, bars=[Bar(0.9, BY_HAND)], PySpark=[100])
    bad = row("b", 85, bars=[Bar(0.9, BY_HAND)], PySpark=[100])
    results = Results((good, bad))
    assert results.verdicts(good)[0].met is True
    assert results.verdicts(bad)[0].reached == 0.85
    assert [r.name for r, _ in results.missed()] == ["b"]


def test_a_bar_against_another_row():
    json, avro = row("json", 100), row("avro", 85, bars=[Bar(0.8, "json")])
    assert Results((json, avro)).verdicts(avro)[0].met is True
    assert Results((avro,)).verdicts(avro)[0].met is None


def test_bars_of_the_figure_itself_from_both_sides():
    fast = row("fast", 60_000, bars=[Bar(50_000), Bar(50_000, at_most=True)])
    assert [v.met for v in Results((fast,)).verdicts(fast)] == [True, False]


def test_a_missed_bar_may_have_another_instead():
    bar = Bar(3_000, unless=Bar(0.6, "nothing"))
    pull, nothing = row("pull", 2_000, bars=[bar]), row("nothing", 3_000)
    (verdict,) = Results((pull, nothing)).verdicts(pull)
    assert verdict.met is True
    assert report.verdict_text(verdict, "requests/s") == (
        "2,000, ≥ 3,000 requests/s; or instead 0.67, ≥ 0.60 of nothing: met"
    )
    slow = Results((pull, row("nothing", 10_000)))
    assert slow.verdicts(pull)[0].met is False


def test_a_side_that_is_absent_is_no_verdict():
    gone = Row("a", "A", "records/s", {HEADRACE: samples([1]), STREAMS: Absent("no JDK")})
    (verdict,) = [Results((gone,)).judge(gone, Bar(1.3, STREAMS))]
    assert (verdict.reached, verdict.met) == (None, None)
    assert "not measured" in report.verdict_text(verdict, "records/s")


def test_an_earlier_run_gives_the_rows_that_this_one_does_not_have():
    earlier = Results((row("a", 1), row("b", 2)), {"measured": "yesterday"})
    both = Results((row("b", 3), row("c", 4)), {"measured": "today"}).with_earlier(earlier)
    assert [(r.name, r.cells[HEADRACE].median, r.measured) for r in both.rows] == [
        ("a", 1, "yesterday"),
        ("b", 3, ""),
        ("c", 4, ""),
    ]
    assert both.about == {"measured": "today"}


def test_percentiles():
    values = list(range(100, 0, -1))
    assert (percentile(values, 50), percentile(values, 99)) == (51, 100)
    assert percentile([7.0], 99) == 7.0
