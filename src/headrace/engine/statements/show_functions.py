"""SHOW FUNCTIONS and DESCRIBE FUNCTION, from the functions' own declarations."""

from __future__ import annotations

from headrace.engine.statements.handling import StatementContext, handles
from headrace.functions.declare.declaration import Function, Overload
from headrace.functions.declare.signatures import parameter_type_text
from headrace.functions.registry import REGISTRY
from headrace.model.entities import (
    Argument,
    DescribedFunction,
    Entity,
    FunctionList,
    FunctionName,
    FunctionVariation,
)
from headrace.model.errors import StatementError
from headrace.sql import ast


@handles(ast.ListFunctions)
def _functions(statement: ast.ListFunctions, context: StatementContext) -> Entity:
    names = (FunctionName(f.name, f.kind.value, f.category.value) for f in REGISTRY.all())
    return FunctionList(context.text, tuple(names))


@handles(ast.DescribeFunction)
def _describe(statement: ast.DescribeFunction, context: StatementContext) -> Entity:
    wanted = statement.name.strip("`\"'").upper()
    function: Function | None = next((f for f in REGISTRY.all() if f.name == wanted), None)
    if function is None:
        raise StatementError(f"Can't find any functions with the name '{statement.name}'")
    return DescribedFunction(
        context.text,
        function.name,
        function.description,
        function.author,
        function.version,
        function.path,
        tuple(map(_variation, function.overloads)),
        function.kind.value,
    )


def _variation(overload: Overload) -> FunctionVariation:
    signature = overload.signature
    arguments = (
        Argument(p.name, parameter_type_text(p.type), p.description, p.variadic)
        for p in signature.parameters
    )
    return FunctionVariation(
        tuple(arguments), parameter_type_text(signature.returns), overload.description
    )
