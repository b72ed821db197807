"""What holds for the statements of one request: properties and variables, as they change."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.model.errors import HeadraceError, StatementError
from headrace.model.settings import (
    SETTINGS,
    Settings,
    canonical,
    check_editable,
    check_limits,
    passes_through,
)
from headrace.sql import ast

# The statements that `Session.takes` takes.
SESSION_STATEMENTS = (
    ast.SetProperty,
    ast.UnsetProperty,
    ast.DefineVariable,
    ast.UndefineVariable,
)


@dataclass
class Session:
    properties: dict[str, object] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Raises for a property that a client may not set; that is no statement's fault."""
        for name in self.properties:
            try:
                check_editable(name)
            except StatementError as e:
                raise HeadraceError(e.message) from None

    def copy(self) -> Session:
        return Session(dict(self.properties), dict(self.variables))

    def settings(self, server: Settings) -> Settings:
        check_limits(server, self.properties)
        return server.override(self.properties)

    def takes(self, statement: ast.Statement) -> bool:
        """Whether the statement was about the session itself; if so, it is done."""
        match statement:
            case ast.SetProperty(name, value):
                _check_known(name)
                check_editable(name)
                Settings({name: value})
                self.properties[name] = value
            case ast.UnsetProperty(name):
                _check_known(name)
                self.properties.pop(name, None)
            case ast.DefineVariable(name, value):
                self.variables[name] = value
            case ast.UndefineVariable(name):
                self.variables.pop(name, None)
            case _:
                return False
        return True


def _check_known(name: str) -> None:
    if canonical(name) not in SETTINGS and not passes_through(name):
        raise StatementError(f"Unknown property: {name}")
