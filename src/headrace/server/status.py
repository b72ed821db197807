"""Endpoints for server information, health, readiness and command status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from starlette.requests import Request as HttpRequest
from starlette.responses import RedirectResponse, Response

from headrace.model.entities import ServerInfo
from headrace.model.errors import StatementError
from headrace.server import bodies
from headrace.server.bodies import Member, invalid, negotiate, read_object
from headrace.server.engine_interface import Engine
from headrace.server.error_responses import BAD_REQUEST, NOT_FOUND, ApiError
from headrace.server.response_formats import JSON, KSQL_JSON, dumps
from headrace.server.streams import Services

T = TypeVar("T")

_TAKEN = {"isOk": True}  # ksqlDB's answer to other servers
_HOST_LENGTH = 300


def json_response(request: HttpRequest, value: object, status: int = 200) -> Response:
    content_type = negotiate(request, (KSQL_JSON, JSON))
    return Response(dumps(value), status_code=status, media_type=content_type)


async def _ask(request: HttpRequest, question: Callable[[Engine], T]) -> T:
    services: Services = request.app.state.services
    return await services.workers.status.run(question, services.engine)


async def info(request: HttpRequest) -> Response:
    return json_response(request, (await _ask(request, lambda e: e.info())).to_json())


async def healthcheck(request: HttpRequest) -> Response:
    """200 when healthy; 503 otherwise, so that load balancers need not read the body."""
    services: Services = request.app.state.services
    health = await services.health()
    return json_response(request, health.to_json(), 200 if health.is_healthy else 503)


async def cluster_status(request: HttpRequest) -> Response:
    return json_response(request, (await _ask(request, lambda e: e.cluster_status())).to_json())


async def heartbeat(request: HttpRequest) -> Response:
    """Takes another server's heartbeat; what it says of the time is not relied on."""
    body = await read_object(request)
    host = _host(bodies.HOST_INFO, body)
    bodies.TIMESTAMP.required_of(body)
    _engine(request).hear(host)
    return json_response(request, _TAKEN)


async def lag(request: HttpRequest) -> Response:
    """Takes how far the stores of another server are behind."""
    body = await read_object(request)
    host, told = _host(bodies.KSQL_HOST, body), bodies.HOST_STORE_LAGS.required_of(body)
    lags, at = told.get("stateStoreLags"), told.get("updateTimeMs")
    if not isinstance(lags, dict) or not isinstance(at, int):
        raise invalid("'hostStoreLags' must have 'stateStoreLags' and 'updateTimeMs'")
    _engine(request).hear_lags(host, lags, at)
    return json_response(request, _TAKEN)


def _engine(request: HttpRequest) -> Engine:
    services: Services = request.app.state.services
    return services.engine


def _host(member: Member[str], body: Mapping[str, object]) -> str:
    found = member.required_of(body)
    host, _, port = found.rpartition(":")
    if not host or not port.isdecimal() or len(found) > _HOST_LENGTH:
        raise invalid(f"'{member.name}' must be host:port")
    return found


async def command_status(request: HttpRequest) -> Response:
    command = "/".join(request.path_params[part] for part in ("type", "entity", "action"))
    status = await _ask(request, lambda e: e.command_status(command))
    if status is None:
        raise ApiError(NOT_FOUND, "Command not found")
    return json_response(request, status.to_json())


async def command_statuses(request: HttpRequest) -> Response:
    statuses = await _ask(request, lambda e: e.command_statuses())
    states = {command: status.status.value for command, status in statuses.items()}
    return json_response(request, {"commandStatuses": states})


async def is_valid_property(request: HttpRequest) -> Response:
    """True, or an error of the request: there is no statement that it could be about."""
    try:
        await _ask(request, lambda e: e.check_property(request.path_params["property"]))
    except StatementError as error:
        raise ApiError(BAD_REQUEST, error.message) from None
    return json_response(request, True)


async def metadata(request: HttpRequest) -> Response:
    server = await _ask(request, lambda e: e.info())
    return json_response(request, {"version": server.version, "clusterId": _cluster_id(server)})


async def cluster_id(request: HttpRequest) -> Response:
    return json_response(request, _cluster_id(await _ask(request, lambda e: e.info())))


def _cluster_id(server: ServerInfo) -> dict[str, object]:
    clusters = {"kafka-cluster": server.kafka_cluster_id, "ksql-cluster": server.ksql_service_id}
    return {"scope": {"path": [], "clusters": clusters}, "id": ""}


async def alive(request: HttpRequest) -> Response:
    return Response("{}", media_type=JSON)


async def ready(request: HttpRequest) -> Response:
    """The readiness check; anybody may call it, so it says no more than yes or no."""
    services: Services = request.app.state.services
    return Response("{}", status_code=200 if services.engine.is_ready() else 503, media_type=JSON)


async def root(request: HttpRequest) -> Response:
    return RedirectResponse("/info", status_code=307)
