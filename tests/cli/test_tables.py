"""Tables fit the terminal, whatever is in them."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from headrace.cli.text_tables import StreamTable, fit, table


def test_wide_cells_are_wrapped():
    lines = list(table(["A", "Statement"], [["x", "CREATE STREAM " * 5]], 40))
    assert all(cell_len(line) <= 40 for line in lines)
    assert "".join(line.partition("|")[2].strip() for line in lines[2:-1]).count("STREAM") == 5


def test_no_rows():
    assert list(table(["A", "B"], [], 80)) == [" A | B", "-------", "-------"]


def test_line_breaks_stay():
    assert list(table(["A"], [["x\ny"]], None)) == [" A", "---", " x", " y", "---"]


@given(st.lists(st.integers(1, 200), min_size=1, max_size=12), st.integers(10, 300))
def test_widths_fit_where_they_can(widths, room):
    fitted = fit(widths, room)
    assert sum(fitted) <= room or all(f <= 4 for f in fitted)
    assert all(f <= w for f, w in zip(fitted, widths, strict=True))


@given(st.lists(st.text(), min_size=1, max_size=6), st.integers(40, 120), st.booleans())
def test_streamed_rows_fit(cells, width, wrap):
    rows = StreamTable([f"C{n}" for n in range(len(cells))], width, None, wrap)
    for line in (*rows.head(), *rows.row(cells)):
        assert cell_len(line) <= width


def test_streamed_rows_can_be_clipped():
    rows = StreamTable(["A", "B"], 23, None, wrap=False)
    assert list(rows.row(["abcdefghijklmnop", "x"])) == ["|abcdefg...|x         |"]
    assert next(rows.head()) == "+----------+----------+"
    fixed = StreamTable(["A"], 80, 5, wrap=True)
    assert list(fixed.row(["abcdefg"])) == ["|abcde|", "|fg   |"]


def test_data_cannot_steer_the_terminal():
    rows = StreamTable(["A"], 40, None, wrap=True)
    assert next(rows.row(["\x1b[2J\r\t"])).strip("| ") == "\\x1b[2J\\r"
