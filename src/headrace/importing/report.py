"""The report of an assessment, for people."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent

from headrace.importing.assessment import Assessment, Item, Verdict
from headrace.importing.recorded import Recorded
from headrace.sql.tokens import tokenize

_SECTIONS = {
    Verdict.THERE: "Is there already",
    Verdict.AS_IS: "Moves as it is",
    Verdict.DIFFERS: "Moves, with differences",
    Verdict.CANNOT: "Cannot move",
}
_WORDS = 8
_DETAILS = frozenset({"(", "WITH"})


def report(assessment: Assessment, *, texts: bool = False) -> Iterator[str]:
    """Line by line; `texts`: with the statements as they are sent."""
    for verdict, heading in _SECTIONS.items():
        items = assessment.of(verdict)
        if items:
            yield f"{heading} ({len(items)})"
            for item in items:
                yield from _item(item, texts=texts)
            yield ""
    if assessment.left_out:
        yield f"Left out ({len(assessment.left_out)})"
        for recorded, why in assessment.left_out:
            yield f"  {recorded.place}: {_shortened(recorded)}: {why}"
        yield ""
    if assessment.settings:
        yield f"Settings left out ({len(assessment.settings)})"
        yield from (f"  {note}" for note in assessment.settings)
        yield ""
    if assessment.functions:
        yield f"To be written in Python ({len(assessment.functions)})"
        for function in assessment.functions:
            yield f"  {function.name}"
            yield indent(function.stub(), "    ")
    yield _summary(assessment)


def _item(item: Item, *, texts: bool) -> Iterator[str]:
    place = "" if item.place == item.title else f"   [{item.place}]"
    yield f"  {item.title}{place}"
    for note in item.notes:
        yield indent(f"- {note}", "      ").replace("      - ", "    - ", 1)
    for remark in item.remarks:
        yield f"    {remark}"
    if texts and item.text:
        yield indent(item.text, "    | ")


def _shortened(recorded: Recorded) -> str:
    """How a statement begins: its columns and properties, which may be secret, are not shown."""
    words: list[str] = []
    for token in tokenize(recorded.text).tokens:
        if token.kind in _DETAILS or len(words) > _WORDS:
            return " ".join([*words, "…"])
        words += [token.text] if token.kind not in ("eof", ";") else []
    return " ".join(words)


def _summary(assessment: Assessment) -> str:
    counts = {verdict: len(assessment.of(verdict)) for verdict in Verdict}
    parts = [f"{count} {_NAMES[verdict]}" for verdict, count in counts.items() if count]
    return f"{assessment.origin}: " + (", ".join(parts) or "nothing to import")


_NAMES = {
    Verdict.AS_IS: "as it is",
    Verdict.DIFFERS: "with differences",
    Verdict.CANNOT: "cannot move",
    Verdict.THERE: "there already",
}
