"""Statements about connectors, which a Kafka Connect worker creates, drops and lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.engine.statements.connect_client import (
    CONFLICT,
    NOT_FOUND,
    ConnectError,
    ConnectWorker,
    Reply,
)
from headrace.engine.statements.handling import StatementContext, handles
from headrace.engine.statements.show_sources import describe
from headrace.model.entities import (
    Connector,
    ConnectorDescription,
    ConnectorList,
    ConnectorPlugin,
    ConnectorPluginList,
    ConnectorStatus,
    ConnectorSummary,
    ConnectorTask,
    CreatedConnector,
    DroppedConnector,
    Entity,
    WarningEntity,
    WorkerState,
)
from headrace.model.errors import StatementError
from headrace.model.secrets import HIDDEN, sounds_secret, without_login
from headrace.sql import ast

CLASS = "connector.class"
_RUNNING = "RUNNING"


def _worker(context: StatementContext) -> ConnectWorker:
    return ConnectWorker.of(context.settings)


def _content(reply: Reply, purpose: str) -> Any:
    """The worker's answer; its refusal as an error that says what was tried."""
    if reply.error is not None:
        raise ConnectError(reply.status, f"{purpose}: {reply.error}")
    return reply.content


@handles(ast.CreateConnector)
def _create(statement: ast.CreateConnector, context: StatementContext) -> Entity:
    worker = _worker(context)
    config = {name: str(literal.value) for name, literal in statement.properties}
    known = _content(worker.connectors(), "Failed to check for existing connector")
    if statement.name.upper() in (name.upper() for name in known):
        exists = f"Connector {statement.name} already exists"
        if statement.if_not_exists:
            return WarningEntity(context.text, exists)
        raise ConnectError(CONFLICT, exists)
    problems = _problems(worker, config, statement.name)
    if problems:
        raise StatementError("Validation error: " + "\n".join(problems))
    made = _content(
        worker.create(statement.name, {**config, "name": statement.name}),
        "Failed to create connector",
    )
    return CreatedConnector(context.text, _connector(made))


def _problems(worker: ConnectWorker, config: dict[str, str], name: str) -> list[str]:
    """What the connector's own plugin says about its settings."""
    plugin = config.get(CLASS)
    if plugin is None:
        config = _shown({**config, "name": name})
        told = ", ".join(f"{k}={v}" for k, v in config.items())
        return [f"Connector config {{{told}}} contains no connector type"]
    if not plugin.strip():
        return ["Connector type cannot be empty"]
    reply = worker.validate(plugin, {**config, "name": name})
    if reply.error is not None:
        return [reply.error]
    values = (item["value"] for item in (reply.content or {}).get("configs", ()))
    return [f"{v['name']} - {'. '.join(v['errors'])}" for v in values if v.get("errors")]


def _shown(config: Mapping[str, str]) -> dict[str, str]:
    """A connector's settings as anybody may read them."""
    return {
        name: HIDDEN if sounds_secret(name) else without_login(value)
        for name, value in config.items()
    }


def _connector(info: Any) -> Connector:
    tasks = (ConnectorTask(t["connector"], t["task"]) for t in info.get("tasks", ()))
    return Connector(
        info["name"], _shown(info.get("config", {})), tuple(tasks), info.get("type", "unknown")
    )


@handles(ast.DropConnector)
def _drop(statement: ast.DropConnector, context: StatementContext) -> Entity:
    reply = _worker(context).delete(statement.name)
    if reply.status == NOT_FOUND and statement.if_exists:
        return WarningEntity(context.text, f"Connector '{statement.name}' does not exist.")
    _content(reply, "Failed to drop connector")
    return DroppedConnector(context.text, statement.name)


@handles(ast.ListConnectors)
def _list(statement: ast.ListConnectors, context: StatementContext) -> Entity:
    worker = _worker(context)
    wanted = None if statement.type is None else statement.type.value.lower()
    found, warnings = [], []
    for name in _content(worker.connectors(), "Failed to list connectors"):
        info = worker.describe(name)
        if info.error is not None:
            warnings.append(f"Could not describe connector {name}: {info.error}")
            if wanted is None:
                found.append(ConnectorSummary(name, "unknown"))
        elif wanted in (None, info.content.get("type")):
            status = worker.status(name)
            state = None if status.error is not None else _summary(status.content)
            kind, plugin = info.content.get("type"), info.content["config"].get(CLASS)
            found.append(ConnectorSummary(name, kind, plugin, state))
    return ConnectorList(context.text, tuple(found), warnings=tuple(warnings))


def _summary(status: Any) -> str:
    """`RUNNING (1/2 tasks RUNNING)`; a warning if a running connector has no running task."""
    state: str = status["connector"]["state"]
    if state != _RUNNING:
        return state
    tasks = status.get("tasks", ())
    running = sum(task["state"] == _RUNNING for task in tasks)
    word = "WARNING" if tasks and not running else _RUNNING
    return f"{word} ({running}/{len(tasks)} tasks RUNNING)"


@handles(ast.ListConnectorPlugins)
def _plugins(statement: ast.ListConnectorPlugins, context: StatementContext) -> Entity:
    plugins = _content(_worker(context).plugins(), "Failed to list connector plugins")
    return ConnectorPluginList(
        context.text,
        tuple(ConnectorPlugin(p["class"], p.get("type"), p.get("version")) for p in plugins),
    )


@handles(ast.DescribeConnector)
def _describe(statement: ast.DescribeConnector, context: StatementContext) -> Entity:
    worker = _worker(context)
    name = statement.name
    status = _content(worker.status(name), "Failed to query connector status")
    info = _content(worker.describe(name), "Failed to describe connector")
    topics, warnings = _topics(worker, name)
    sources = (s for s in context.catalog.sources() if s.topic in topics)
    return ConnectorDescription(
        context.text,
        info["config"].get(CLASS, ""),
        ConnectorStatus(
            status["name"],
            _state(status["connector"]),
            tuple(_state(task) for task in status.get("tasks", ())),
            status.get("type", "unknown"),
        ),
        tuple(describe(source, context, extended=False)[0] for source in sources),
        topics,
        warnings=warnings,
    )


def _topics(worker: ConnectWorker, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    reply = worker.topics(name)
    if reply.status == NOT_FOUND:  # a worker from before it could tell
        return (), ()
    if reply.error is not None:
        return (), (f"Could not list related topics due to error: {reply.error}",)
    return tuple(reply.content.get(name, {}).get("topics", ())), ()


def _state(state: Any) -> WorkerState:
    return WorkerState(
        state["state"], state.get("worker_id", ""), state.get("trace"), state.get("id")
    )
