"""The chart: horizontal bars of records a second, one group for each workload, as plain SVG."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from headrace.bench.figures import BY_HAND, FLINK, HEADRACE, STREAMS, Row, Samples

COLOURS = {HEADRACE: "#0b7285", BY_HAND: "#adb5bd", STREAMS: "#e8a33d", FLINK: "#c2255c"}
WIDTH, LEFT, RIGHT = 860, 250, 90
BAR, GAP, GROUP_GAP = 14, 2, 12
TOP, BOTTOM = 54, 16
FONT = "font-family='Helvetica, Arial, sans-serif'"


def svg(rows: Sequence[Row]) -> str:
    """A picture of rows that have a rate on several sides; each bar starts at nothing."""
    shown = [
        (row, [(side, row.cells[side]) for side in COLOURS if _measured(row, side)]) for row in rows
    ]
    heights = [len(cells) * (BAR + GAP) + GROUP_GAP for _, cells in shown]
    height = TOP + sum(heights) + BOTTOM
    highest = max((cell.high for _, cells in shown for _, cell in _samples(cells)), default=1.0)
    scale = (WIDTH - LEFT - RIGHT) / highest
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' "
        f"viewBox='0 0 {WIDTH} {height}' {FONT} font-size='12'>",
        f"<rect width='{WIDTH}' height='{height}' fill='#ffffff'/>",
        _text(16, 22, "Records a second, all sides in one run; more is better", size=15),
        *_legend([s for s in COLOURS if any(s == side for _, c in shown for side, _ in c)]),
    ]
    y = TOP
    for (row, cells), tall in zip(shown, heights, strict=True):
        middle = y + (tall - GROUP_GAP) / 2 + 4
        parts.append(_text(LEFT - 10, middle, row.title, anchor="end"))
        for i, (side, cell) in enumerate(_samples(cells)):
            parts += _bar(y + i * (BAR + GAP), side, cell, scale)
        y += tall
    return "\n".join([*parts, "</svg>"]) + "\n"


def _measured(row: Row, side: str) -> bool:
    return isinstance(row.cells.get(side), Samples)


def _samples(cells: Sequence[tuple[str, object]]) -> list[tuple[str, Samples]]:
    return [(side, cell) for side, cell in cells if isinstance(cell, Samples)]


def _bar(y: float, side: str, cell: Samples, scale: float) -> list[str]:
    """The median as a bar, the spread as a line on its end."""
    length = cell.median * scale
    end = LEFT + cell.high * scale
    line = (
        f"<line x1='{LEFT + cell.low * scale:.1f}' x2='{end:.1f}' y1='{y + BAR / 2:.1f}' "
        f"y2='{y + BAR / 2:.1f}' stroke='#212529' stroke-width='1'/>"
    )
    return [
        f"<rect x='{LEFT}' y='{y:.1f}' width='{length:.1f}' height='{BAR}' "
        f"fill='{COLOURS[side]}'/>",
        *([line] if cell.high > cell.low else []),
        _text(max(LEFT + length, end) + 5, y + BAR - 3, f"{cell.median:,.0f}", size=11),
    ]


def _legend(sides: Sequence[str]) -> list[str]:
    parts, x = [], 16
    for side in sides:
        parts.append(f"<rect x='{x}' y='32' width='11' height='11' fill='{COLOURS[side]}'/>")
        parts.append(_text(x + 16, 42, side))
        x += 16 + 8 * len(side) + 20
    return parts


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-size='{size}' "
        f"fill='#212529'>{escape(words)}</text>"
    )
