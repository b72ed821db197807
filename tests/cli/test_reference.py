"""The reference pages in docs/ are what the declarations say."""

from pathlib import Path

import pytest

from headrace.cli.reference import PAGES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_as_declared(page):
    assert (DOCS / f"{page}.md").read_text() == PAGES[page]() + "\n", "run: make docs"
