"""The session of one request: its properties and variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.model.errors import HeadraceError, StatementError
from headrace.model.settings import (
    Settings,
    canonical,
    check_editable,
    check_limits,
    check_override,
    declared,
    passes_through,
)
from headrace.sql import ast
from headrace.sql.parser import ParsedStatement, parse
from headrace.sql.variables import substitute


def setting_text(value: object) -> str:
    """A setting's value as planning reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def setting_texts(settings: Mapping[str, object]) -> dict[str, str]:
    return {name: setting_text(value) for name, value in settings.items() if value is not None}


@dataclass
class Session:
    """The properties and variables of one request, as its statements change them."""

    properties: dict[str, object] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    def check(self, server: Settings) -> None:
        """Raises for a property that a client may not set; that is no statement's fault."""
        try:
            for name in self.properties:
                check_editable(name)
            check_override(server, self.properties)
        except StatementError as e:
            raise HeadraceError(e.message) from None

    def copy(self) -> Session:
        return Session(dict(self.properties), dict(self.variables))

    def settings(self, server: Settings) -> Settings:
        check_limits(server, self.properties)
        check_override(server, self.properties)
        return server.override(self.properties)

    def texts(self, server: Settings) -> dict[str, str]:
        """The settings in force as texts, which is what planning reads."""
        return setting_texts(self.settings(server))

    def parse(self, text: str, server: Settings) -> ParsedStatement:
        """One statement, with its variables replaced."""
        settings = self.settings(server)
        if "${" in text and settings.flag("ksql.variable.substitution.enable"):
            text = substitute(text, self.variables)
        return parse(text)[0]

    def takes(self, statement: ast.Statement) -> bool:
        """Runs a statement about the session itself; False if it is another one."""
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
    if declared(canonical(name)) is None and not passes_through(name):
        raise StatementError(f"Unknown property: {name}")
