"""What to say about a token that cannot stand where it stands."""

from __future__ import annotations

from headrace.model.errors import ParseError
from headrace.sql.tokens import Source


def diagnose(source: Source, index: int, *, tests: bool = False) -> ParseError:
    token = source.tokens[index]
    position = source.position(token.start)
    where = f"{position.line}:{position.column}"
    message = f"line {where}: Syntax Error\nSyntax error at or near '{token.text}' at line {where}"
    return ParseError(message, position, source.line(position.line))
