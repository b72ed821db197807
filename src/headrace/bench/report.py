"""Results as people and programs read them: a table in the terminal, Markdown, and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table

from headrace.bench.figures import (
    HEADRACE,
    SIDES,
    Absent,
    Bar,
    Cell,
    Results,
    Row,
    Samples,
    Verdict,
)


def number(value: float) -> str:
    """As many digits as mean something."""
    for limit, digits in ((100, 0), (10, 1)):
        if abs(value) >= limit:
            return f"{value:,.{digits}f}"
    return f"{value:.2f}"


def figure(cell: Samples) -> str:
    """Median, and how far the repeats lie apart."""
    if len(cell.values) == 1:
        return number(cell.median)
    return f"{number(cell.median)} ({number(cell.low)}–{number(cell.high)})"


def wanted(bar: Bar, unit: str) -> str:
    sign = "≤" if bar.at_most else "≥"
    if bar.against:
        return f"{sign} {bar.wanted:.2f} of {bar.against}"
    return f"{sign} {number(bar.wanted)} {unit}"


def verdict_text(verdict: Verdict, unit: str) -> str:
    want = wanted(verdict.bar, unit)
    if verdict.reached is None:
        return f"{want}: not measured"
    reached = f"{verdict.reached:.2f}" if verdict.bar.against else number(verdict.reached)
    if verdict.instead is not None:
        other = verdict_text(verdict.instead, unit)
        return f"{reached}, {want}; or instead {other}"
    return f"{reached}, {want}: {'met' if verdict.met else 'MISSED'}"


class _Notes:
    """Reasons as numbered notes, each written once."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def mark(self, reason: str) -> str:
        if reason not in self.reasons:
            self.reasons.append(reason)
        return f"[{self.reasons.index(reason) + 1}]"

    def cell(self, cell: Cell | None) -> str:
        match cell:
            case Samples():
                return figure(cell)
            case Absent(reason):
                return f"— {self.mark(reason)}"
        return ""


def _sides(results: Results) -> list[str]:
    return [side for side in SIDES if any(side in row.cells for row in results.rows)]


def _family(row: Row) -> str:
    """Rows of one table: those that are compared with other sides, and those that are not."""
    return "compared" if len(row.cells) > 1 else "alone"


def show(console: Console, results: Results) -> None:
    sides, notes = _sides(results), _Notes()
    table = Table(header_style="bold", title_justify="left")
    for heading in ("workload", "unit", *sides, "outputs", "bar"):
        table.add_column(heading, justify="right" if heading in sides else "left")
    for row in results.rows:
        verdicts = results.verdicts(row)
        style = "red" if any(v.met is False for v in verdicts) else None
        bars = "\n".join(verdict_text(v, row.unit) for v in verdicts)
        cells = [notes.cell(row.cells.get(side)) for side in sides]
        table.add_row(row.name, row.unit, *cells, row.outputs, bars, style=style)
    console.print(table)
    for i, reason in enumerate(notes.reasons, 1):
        console.print(f"[{i}] {reason}", markup=False, highlight=False)
    for name, value in results.about.items():
        console.print(f"{name}: {value}", markup=False, highlight=False)
    console.print(summary(results), markup=False, highlight=False)


def summary(results: Results) -> str:
    verdicts = [v for row in results.rows for v in results.verdicts(row)]
    judged = [v for v in verdicts if v.met is not None]
    missed = [f"{row.name} ({verdict_text(v, row.unit)})" for row, v in results.missed()]
    text = f"{len(judged) - len(missed)} of {len(judged)} bars are met"
    if unmeasured := len(verdicts) - len(judged):
        text += f", {unmeasured} could not be judged"
    return f"{text}. Missed: {'; '.join(missed)}." if missed else f"{text}."


def markdown(results: Results, chart: str | None = None) -> str:
    """The page that `headrace bench` writes."""
    notes = _Notes()
    parts = [
        "# Benchmark",
        "Written by `headrace bench`; [performance.md](performance.md) explains it. Figures are "
        "medians, with the lowest and the highest repeat in parentheses. A ratio is the median of "
        "the ratios of each repeat. All sides ran in one run, on one broker, on the same records.",
        "\n".join(f"- {name}: {value}" for name, value in results.about.items()),
        summary(results),
    ]
    if chart is not None:
        parts.append(f"![Records a second, side by side]({chart})")
    for _, rows in groupby(results.rows, _family):
        part = Results(tuple(rows))
        sides = _sides(part)
        headings = ["workload", "records", "unit", *sides, "outputs", "bar"]
        lines = [_line(headings), _line(["---:" if h in sides else "---" for h in headings])]
        for row in part.rows:
            verdicts = results.verdicts(row)
            bars = "<br>".join(_marked(v, row.unit) for v in verdicts)
            title = f"{row.title} (`{row.name}`)"
            if row.measured:
                title += f", measured {row.measured}"
            count = "" if row.records is None else f"{row.records:,}"
            cells = [notes.cell(row.cells.get(side)) for side in sides]
            lines.append(_line([title, count, row.unit, *cells, row.outputs, bars]))
        parts.append("\n".join(lines))
    if notes.reasons:
        parts.append("\n".join(f"[{i}] {reason}  " for i, reason in enumerate(notes.reasons, 1)))
    return "\n\n".join(parts) + "\n"


def _marked(verdict: Verdict, unit: str) -> str:
    text = verdict_text(verdict, unit)
    return f"**{text}**" if verdict.met is False else text


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


# ---------------------------------------------------------------------------------------- JSON


def to_json(results: Results) -> str:
    rows = []
    for row in results.rows:
        data = asdict(row)
        data["cells"] = {side: _cell_data(cell) for side, cell in row.cells.items()}
        data["verdicts"] = [
            {"bar": wanted(v.bar, row.unit), "reached": v.reached, "met": v.met}
            for v in results.verdicts(row)
        ]
        rows.append(data)
    return json.dumps({"about": dict(results.about), "rows": rows}, indent=1) + "\n"


def _cell_data(cell: Cell) -> dict[str, Any]:
    if isinstance(cell, Absent):
        return {"absent": cell.reason}
    return {
        "median": cell.median,
        "low": cell.low,
        "high": cell.high,
        "values": list(cell.values),
    }


def from_json(text: str) -> Results:
    found = json.loads(text)
    return Results(tuple(_row(row) for row in found["rows"]), found["about"])


def _row(data: Mapping[str, Any]) -> Row:
    kept = {k: v for k, v in data.items() if k not in ("cells", "bars", "verdicts")}
    cells = {
        side: Absent(cell["absent"]) if "absent" in cell else Samples(tuple(cell["values"]))
        for side, cell in data["cells"].items()
    }
    return Row(cells=cells, bars=tuple(_bar(b) for b in data["bars"]), **kept)


def _bar(data: Mapping[str, Any]) -> Bar:
    unless = data.get("unless")
    return Bar(
        data["wanted"],
        data["against"],
        data["at_most"],
        None if unless is None else _bar(unless),
    )


def compared_rates(results: Results) -> list[Row]:
    """The rows that a chart can show: rates that more than one side has."""
    return [
        row
        for row in results.rows
        if row.unit == "records/s"
        and isinstance(row.cells.get(HEADRACE), Samples)
        and sum(isinstance(cell, Samples) for cell in row.cells.values()) > 1
    ]
