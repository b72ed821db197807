"""SHOW PROPERTIES, SHOW VARIABLES and SHOW TYPES."""

from __future__ import annotations

from headrace.engine.statements.handling import StatementContext, handles
from headrace.engine.statements.request_session import setting_text
from headrace.model.entities import (
    Entity,
    Property,
    PropertyList,
    SchemaInfo,
    TypeList,
    Variable,
    VariableList,
)
from headrace.model.settings import SETTINGS, Settings, canonical, in_force, shown
from headrace.sql import ast


@handles(ast.ListTypes)
def _types(statement: ast.ListTypes, context: StatementContext) -> Entity:
    types = context.catalog.types
    return TypeList(context.text, {name: SchemaInfo.of(types[name]) for name in sorted(types)})


@handles(ast.ListVariables)
def _variables(statement: ast.ListVariables, context: StatementContext) -> Entity:
    return VariableList(
        context.text, tuple(Variable(k, v) for k, v in context.session.variables.items())
    )


@handles(ast.ListProperties)
def _properties(statement: ast.ListProperties, context: StatementContext) -> Entity:
    """`overwritten` are those that the session changed, `default` those that nobody did."""
    settings = context.settings
    rows = tuple(_property(name, settings) for name in sorted(settings))
    own = context.env.settings
    overwritten = tuple(
        sorted(
            name
            for name in map(canonical, context.session.properties)
            if settings.text(name) != own.text(name)
        )
    )
    defaults = tuple(
        sorted(
            name
            for name in in_force()
            if name not in settings.given or settings[name] == SETTINGS[name].default
        )
    )
    return PropertyList(context.text, rows, overwritten, defaults)


def _property(name: str, settings: Settings) -> Property:
    declared = SETTINGS.get(name)
    editable = declared is not None and declared.editable
    value = settings[name]
    text = shown(name, "" if value is None else setting_text(value))
    return Property(name, "KSQL", text, editable, "QUERY" if editable else "SERVER")
