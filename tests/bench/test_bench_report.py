"""The table, the page, the data and the chart of a run."""

import io
from xml.etree import ElementTree

from rich.console import Console

from headrace.bench import chart, command, report
from headrace.bench.figures import (
    BY_HAND,
    HEADRACE,
    STREAMS,
    Absent,
    Bar,
    Results,
    Row,
    samples,
)

NO_JDK = "there is no Java compiler"
RESULTS = Results(
    (
        Row(
            "stateless-json",
            "filter & projection",
            "records/s",
            {
                HEADRACE: samples([200_000, 210_000, 190_000]),
                BY_HAND: samples([250_000, 250_000, 250_000]),
                STREAMS: Absent(NO_JDK),
            },
            (Bar(0.9, BY_HAND),),
            1_000_000,
            "equal",
        ),
        Row(
            "aggregate-100",
            "COUNT",
            "records/s",
            {HEADRACE: samples([100_000]), STREAMS: Absent(NO_JDK)},
            (Bar(1.3, STREAMS),),
        ),
        Row("latency-p50", "one record", "ms", {HEADRACE: samples([137.2])}, (Bar(200, "", True),)),
    ),
    {"measured": "today", "machine": "two cores"},
)


def test_figures_have_as_many_digits_as_mean_something():
    assert [report.number(n) for n in (123456.7, 99.44, 3.14159, 0.05)] == [
        "123,457",
        "99.4",
        "3.14",
        "0.05",
    ]


def test_the_page_tells_figures_bars_reasons_and_the_machine():
    page = report.markdown(RESULTS, "img/benchmark.svg")
    assert "| 200,000 (190,000–210,000) | 250,000 (250,000–250,000) | — [1] | equal |" in page
    assert "**0.80, ≥ 0.90 of PySpark: MISSED**" in page
    assert "137, ≤ 200 ms: met" in page
    assert "≥ 1.30 of Kafka Streams: not measured" in page
    assert page.count(NO_JDK) == 1
    assert "- machine: two cores" in page
    assert "![Records a second, side by side](img/benchmark.svg)" in page


def test_every_line_of_a_table_has_its_columns():
    for block in report.markdown(RESULTS).split("\n\n"):
        if block.startswith("|"):
            assert len({line.count("|") for line in block.splitlines()}) == 1


def test_the_summary_counts_bars():
    assert report.summary(RESULTS).startswith(
        "1 of 2 bars are met, 1 could not be judged. Missed: stateless-json (0.80"
    )


def test_the_terminal_shows_the_same():
    text = io.StringIO()
    report.show(Console(file=text, width=200), RESULTS)
    assert "MISSED" in text.getvalue()
    assert f"[1] {NO_JDK}" in text.getvalue()


def test_data_is_read_back_as_it_was():
    assert report.from_json(report.to_json(RESULTS)) == RESULTS


def test_the_chart_is_a_picture_of_what_can_be_compared():
    shown = report.compared_rates(RESULTS)
    assert [row.name for row in shown] == ["stateless-json"]
    picture = ElementTree.fromstring(chart.svg(shown))
    space = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in picture.iter(f"{space}text")]
    assert "filter & projection" in texts
    assert "200,000" in texts and "250,000" in texts
    bars = [r for r in picture.iter(f"{space}rect") if r.get("height") == str(chart.BAR)]
    ours, hand = (float(bar.get("width")) for bar in bars)
    assert round(ours / hand, 2) == 0.8
    inside = all(0 <= float(r.get("x", 0)) + float(r.get("width")) <= chart.WIDTH for r in bars)
    assert inside


def test_a_run_is_written_and_added_to(tmp_path):
    command.write(tmp_path, RESULTS)
    assert {p.name for p in tmp_path.rglob("*.*")} == {
        "benchmark.json",
        "benchmark.md",
        "benchmark.svg",
    }
    assert command._earlier(tmp_path) == RESULTS
    assert command._earlier(tmp_path / "nowhere") == Results(())
