"""Text tables fitted to the terminal: whole ones for lists, row by row for streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

_LEAST = 4  # columns are never narrower, however small the terminal
# Data must not steer the terminal; line breaks are dealt with where they occur.
_CONTROLS = {n: f"\\x{n:02x}" for n in (*range(10), *range(11, 32), *range(127, 160))}
_CONTROLS |= {ord("\t"): "    ", ord("\r"): "\\r"}


def lines_of(cell: str, width: int) -> list[str]:
    """A cell's text in lines of at most `width`; line breaks in it are kept."""
    return [
        part
        for line in _tame(cell).split("\n")
        for part in (chop_cells(line, width) if line else [""])
    ]


def _tame(text: str) -> str:
    return text.translate(_CONTROLS)


def fit(widths: Sequence[int], room: int) -> list[int]:
    """Widths that fit the room: wide columns give way first, as equally as can be."""
    fitted = list(widths)
    while sum(fitted) > room:
        widest = max(fitted)
        if widest <= _LEAST:
            break
        next_wide = max([w for w in fitted if w < widest], default=_LEAST)
        count = fitted.count(widest)
        step = max(1, min(widest - max(next_wide, _LEAST), -(-(sum(fitted) - room) // count)))
        fitted = [w - step if w == widest else w for w in fitted]
    return fitted


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], width: int | None
) -> Iterator[str]:
    """A list: headings, a rule, the rows, a rule."""
    widths = [
        max([cell_len(part) for cell in column for part in _tame(cell).split("\n")])
        for column in zip(headers, *rows, strict=True)
    ]
    if width is not None:
        widths = fit(widths, width - 3 * len(widths) + 1)
    rule = "-" * (sum(widths) + 3 * len(widths) - 1)
    yield from _lines(headers, widths)
    yield rule
    for row in rows:
        yield from _lines(row, widths)
    yield rule


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    cells = [lines_of(cell, max(width, 1)) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, cells))):
        parts = [
            set_cell_size(cell[number] if number < len(cell) else "", width)
            for cell, width in zip(cells, widths, strict=True)
        ]
        yield f" {' | '.join(parts)}".rstrip()


class StreamTable:
    """Rows as they come, in columns of a fixed width, as the widest cell is not known.

    In a pipe the width is None: cells are then written as they are, for the next program.
    """

    def __init__(
        self, headers: Sequence[str], width: int | None, column_width: int | None, wrap: bool
    ) -> None:
        self.headers = headers
        self.wrap = wrap
        self.widths: list[int] | None = None
        if column_width is not None:
            self.widths = [column_width] * len(headers)
        elif width is not None:
            room = width - len(headers) - 1
            each, rest = divmod(max(room, 0), max(len(headers), 1))
            self.widths = [max(each + (n < rest), _LEAST) for n in range(len(headers))]

    def head(self) -> Iterator[str]:
        if self.widths is None:
            yield _joined(self.headers)
            return
        yield self._rule()
        yield from self.row(self.headers)
        yield self._rule()

    def row(self, cells: Sequence[str]) -> Iterator[str]:
        if self.widths is None:
            yield _joined([cell.replace("\n", "\\n") for cell in cells])
            return
        parts = [self._cell(cell, width) for cell, width in zip(cells, self.widths, strict=True)]
        for number in range(max(map(len, parts), default=0)):
            yield _joined(
                [
                    set_cell_size(part[number] if number < len(part) else "", width)
                    for part, width in zip(parts, self.widths, strict=True)
                ]
            )

    def _cell(self, cell: str, width: int) -> list[str]:
        if self.wrap:
            return lines_of(cell, width)
        flat = _tame(cell).replace("\n", " ")
        if cell_len(flat) > width:
            flat = set_cell_size(flat, max(width - 3, 0)) + "..."[:width]
        return [flat]

    def _rule(self) -> str:
        return "+" + "".join("-" * width + "+" for width in self.widths or ())


def _joined(cells: Sequence[str]) -> str:
    return "|" + "|".join(cells) + "|"
