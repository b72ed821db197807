"""Writes out what a statement leaves to the schema registry: the columns it does not declare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.sql import ast

if TYPE_CHECKING:
    from headrace.topics.registry.client import RegistryClient


def resolve_schema(
    statement: ast.Statement, settings: Mapping[str, str], registry: RegistryClient | None
) -> ast.Statement:
    return statement
