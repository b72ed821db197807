"""What the server is set to: properties, variables, types."""

from __future__ import annotations

from headrace.engine.statements.handling import Asked, handles
from headrace.model.entities import (
    Entity,
    Property,
    PropertyList,
    SchemaInfo,
    TypeList,
    Variable,
    VariableList,
)
from headrace.model.settings import SETTINGS, Settings, canonical, shown
from headrace.sql import ast


@handles(ast.ListTypes)
def _types(statement: ast.ListTypes, asked: Asked) -> Entity:
    types = asked.catalog.types
    return TypeList(asked.text, {name: SchemaInfo.of(types[name]) for name in sorted(types)})


@handles(ast.ListVariables)
def _variables(statement: ast.ListVariables, asked: Asked) -> Entity:
    return VariableList(
        asked.text, tuple(Variable(k, v) for k, v in asked.session.variables.items())
    )


@handles(ast.ListProperties)
def _properties(statement: ast.ListProperties, asked: Asked) -> Entity:
    """`overwritten` are those that the session changed, `default` those that nobody did."""
    settings = asked.settings
    rows = tuple(_property(name, settings) for name in sorted(settings))
    own = asked.world.settings
    overwritten = tuple(
        sorted(
            name
            for name in map(canonical, asked.session.properties)
            if settings.text(name) != own.text(name)
        )
    )
    defaults = tuple(
        sorted(
            name
            for name, setting in SETTINGS.items()
            if name not in settings.given or settings[name] == setting.default
        )
    )
    return PropertyList(asked.text, rows, overwritten, defaults)


def _property(name: str, settings: Settings) -> Property:
    declared = SETTINGS.get(name)
    editable = declared is not None and declared.editable
    value = shown(name, _text(settings, name))
    return Property(name, "KSQL", value, editable, "QUERY" if editable else "SERVER")


def _text(settings: Settings, name: str) -> str:
    value = settings[name]
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
