"""`deploy/compose.yaml`, as far as it can be checked without Docker: what it names is there, its
parts find each other, and Headrace takes its arguments."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import yaml

from headrace import __version__
from headrace.cli.start import configure, launch_options
from headrace.model.settings import Settings
from headrace.server.endpoints import ENDPOINTS
from headrace.server.settings import ServerSettings

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
# What Compose's specification knows of a service, as far as it is used here.
KNOWN = {"image", "build", "command", "depends_on", "environment", "ports", "volumes"}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_names_what_there_is(name):
    service = SERVICES[name]
    assert set(service) <= KNOWN | {"healthcheck"}
    image, _, tag = service["image"].partition(":")
    assert image and tag and tag != "latest"
    assert set(service.get("depends_on", ())) <= set(SERVICES)
    for other, how in service.get("depends_on", {}).items():
        assert how == {"condition": "service_healthy"}
        assert "healthcheck" in SERVICES[other]
    for volume in service.get("volumes", ()):
        assert volume.partition(":")[0] in COMPOSE["volumes"]
    for port in service["ports"]:  # nobody else's machine reaches what asks for no password
        host, outside, inside = port.split(":")
        assert (host, outside) == ("127.0.0.1", inside)


def listeners(setting):
    told = SERVICES["kafka"]["environment"][setting].split(",")
    return dict(listener.split("://") for listener in told)


def test_kafka_is_found_inside_and_outside():
    listening, advertised = (
        listeners(name) for name in ("KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS")
    )
    protocols = SERVICES["kafka"]["environment"]["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"]
    assert {p.split(":")[0] for p in protocols.split(",")} == set(listening)
    assert {name: address.partition(":")[2] for name, address in advertised.items()} == {
        name: address.partition(":")[2] for name, address in listening.items() if name in advertised
    }
    registry = SERVICES["registry"]["environment"]
    assert registry["SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS"] == advertised["INSIDE"]
    assert f"127.0.0.1:{advertised['OUTSIDE'].split(':')[1]}" in SERVICES["kafka"]["ports"][0]


def test_headrace_takes_its_arguments():
    service = SERVICES["headrace"]
    assert service["image"] == f"headrace:{__version__}"
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    command, *arguments = service["command"]
    assert command == "start"
    parser = argparse.ArgumentParser()
    configure(parser)
    options = launch_options(parser.parse_args(arguments))
    settings = Settings(options["settings"])  # raises if one is unknown
    assert settings.text("bootstrap.servers") == listeners("KAFKA_ADVERTISED_LISTENERS")["INSIDE"]
    assert settings.text("ksql.schema.registry.url") == "http://registry:8081"
    assert SERVICES["registry"]["environment"]["SCHEMA_REGISTRY_LISTENERS"].endswith(":8081")
    callers = ServerSettings.of(settings, options["host"], 8088).callers()
    for host in ("localhost:8088", "headrace:8088"):
        assert callers.refusal(host, None, None) is None
    assert callers.refusal("evil.example", None, None) is not None
    (volume,) = service["volumes"]
    assert str(options["data_dir"]) == volume.partition(":")[2]
    probed = service["healthcheck"]["test"][-1]
    assert any(f":8088{e.path}'" in probed for e in ENDPOINTS if e.open)


def test_the_image_has_the_server():
    text = (DEPLOY / "Dockerfile").read_text()
    assert '"$(ls /tmp/wheels/*.whl)[server]"' in text
