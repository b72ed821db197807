"""What `deploy/` holds, as far as it can be checked without Docker and without a cluster: manifests
against Kubernetes' own schema, references between them, settings, and the image's script."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import kubernetes_validate
import pytest
import yaml

from headrace import __version__
from headrace.cli.properties import read_properties
from headrace.model.settings import Settings, is_secret
from headrace.server.endpoints import ENDPOINTS
from headrace.server.settings import ServerSettings
from headrace.spark.runtime.package import DIRECTORY

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
IMAGE = f"headrace:{__version__}"

KUSTOMIZATION = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
RESOURCES = [
    resource
    for file in [*KUSTOMIZATION["resources"], "executor.yaml"]
    for resource in yaml.safe_load_all((KUBERNETES / file).read_text())
]


def named(kind: str, name: str = "headrace") -> dict:
    (found,) = (r for r in RESOURCES if r["kind"] == kind and r["metadata"].get("name") == name)
    return found


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda r: r["kind"])
def test_manifests_fit_kubernetes_schema(resource):
    kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


def test_a_wrong_manifest_would_be_found():
    service = {**named("Service"), "spec": {"port": [1]}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service, kubernetes_validate.latest_version(), strict=True)


def test_manifests_name_each_other():
    pod = named("StatefulSet")["spec"]["template"]
    labels = pod["metadata"]["labels"]
    assert named("StatefulSet")["spec"]["selector"]["matchLabels"] == labels
    assert named("Service")["spec"]["selector"] == labels
    assert named("ServiceAccount")["metadata"]["name"] == pod["spec"]["serviceAccountName"]
    assert named("RoleBinding")["roleRef"]["name"] == named("Role")["metadata"]["name"]
    assert named("RoleBinding")["subjects"][0]["name"] == pod["spec"]["serviceAccountName"]
    (template,) = (r for r in RESOURCES if r["kind"] == "Pod")
    assert template["metadata"]["labels"] != labels  # requests go to the server alone
    named("PersistentVolumeClaim", "headrace-state")
    for spec in (pod["spec"], template["spec"]):
        volumes = {v["name"]: v for v in spec["volumes"]}
        assert volumes["state"]["persistentVolumeClaim"]["claimName"] == "headrace-state"
        mounts = {m["name"]: m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
        assert mounts["state"] == "/state"
        assert spec["containers"][0]["image"] == IMAGE


def test_the_servers_settings_are_known_and_point_to_what_is_there():
    told = read_properties(KUBERNETES / "headrace.properties")
    assert read_properties(KUBERNETES / "secret.properties") == {}
    pod = named("StatefulSet")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    arguments = [a.removeprefix("--set=") for a in container["args"] if a.startswith("--set=")]
    told |= dict(a.split("=", 1) for a in arguments)
    settings = Settings(told)  # raises if one is unknown
    assert settings.text("state.dir") == "file:///state"
    assert told["spark.kubernetes.container.image"] == IMAGE
    (made,) = KUSTOMIZATION["configMapGenerator"]
    assert pod["volumes"][0]["configMap"]["name"] == made["name"]
    assert all((KUBERNETES / file).is_file() for file in made["files"])
    (mounted,) = (m for m in container["volumeMounts"] if m["name"] == "settings")
    template = Path(told["spark.kubernetes.executor.podTemplateFile"])
    assert str(template.parent) == mounted["mountPath"]
    assert template.name in made["files"]
    accounts = {r["metadata"]["name"] for r in RESOURCES if r["kind"] == "ServiceAccount"}
    assert told["spark.kubernetes.authenticate.executor.serviceAccountName"] in accounts
    known = {e["name"] for e in container["env"]}
    assert set(re.findall(r"\$\((\w+)\)", " ".join(arguments))) == known


def containers():
    """Of the server's pod and of an executor's: the pod's spec, and its only container."""
    (template,) = (r for r in RESOURCES if r["kind"] == "Pod")
    for spec in (named("StatefulSet")["spec"]["template"]["spec"], template["spec"]):
        (container,) = spec["containers"]
        yield spec, container


def test_pods_may_do_no_more_than_they_need():
    for pod, container in containers():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }


def test_probes_need_no_password():
    """What they ask for is open to all, and says nothing else."""
    pod = named("StatefulSet")["spec"]["template"]["spec"]
    open_to_all = {e.path for e in ENDPOINTS if e.open}
    kinds = {
        kind: probe["httpGet"]["path"]
        for kind, probe in pod["containers"][0].items()
        if kind.endswith("Probe")
    }
    assert set(kinds) == {"readinessProbe", "startupProbe", "livenessProbe"}
    assert set(kinds.values()) <= open_to_all
    assert (kinds["readinessProbe"], kinds["livenessProbe"]) == ("/chc/ready", "/chc/live")


def test_passwords_are_in_a_secret():
    (made,) = KUSTOMIZATION["secretGenerator"]
    pod = named("StatefulSet")["spec"]["template"]["spec"]
    (volume,) = (v for v in pod["volumes"] if "secret" in v)
    assert volume["secret"]["secretName"] == made["name"]
    (mounted,) = (m for m in pod["containers"][0]["volumeMounts"] if m["name"] == volume["name"])
    read = f"--config={mounted['mountPath']}/secret.properties"
    assert read in pod["containers"][0]["args"]
    assert all((KUBERNETES / file).is_file() for file in made["files"])
    open_settings = read_properties(KUBERNETES / "headrace.properties")
    assert not [name for name in open_settings if is_secret(name)]
    # The examples in it, without their comment signs, are settings that there are.
    lines = (KUBERNETES / "secret.properties").read_text().splitlines()
    examples = [line[1:] for line in lines if re.match(r"#\w[\w.]*=", line)]
    settings = Settings(dict(line.split("=", 1) for line in examples))
    assert settings.text("authentication.credentials.file") == f"{mounted['mountPath']}/users.txt"
    assert "users.txt" in made["files"]
    assert any(is_secret(name) for name in settings.given)


def test_nobody_else_reaches_the_pods():
    server, executor = (named("NetworkPolicy", name) for name in ("headrace", "headrace-executor"))
    labels = named("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    (template,) = (r for r in RESOURCES if r["kind"] == "Pod")
    assert server["spec"]["podSelector"]["matchLabels"] == labels
    assert executor["spec"]["podSelector"]["matchLabels"] == template["metadata"]["labels"]
    everybody, executors = server["spec"]["ingress"]
    assert everybody["ports"] == [{"port": "http"}]
    (of,) = executors["from"]
    assert of["podSelector"]["matchLabels"] == template["metadata"]["labels"]


def test_the_service_is_a_name_that_the_server_knows():
    told = read_properties(KUBERNETES / "headrace.properties")
    settings = ServerSettings.of(Settings(told), "0.0.0.0", 8088)
    name, space = named("Service")["metadata"]["name"], KUSTOMIZATION["namespace"]
    callers = settings.callers()
    for host in (name, f"{name}.{space}", f"{name}.{space}.svc.cluster.local", "10.0.0.7:8088"):
        assert callers.refusal(host, None, None) is None
    assert callers.refusal("evil.example", None, None) is not None


def test_settings_for_yarn_are_known():
    told = read_properties(DEPLOY / "yarn.properties")
    Settings(told)
    assert told["spark.archives"].endswith(f"headrace-{__version__}.zip#{DIRECTORY}")


def test_the_image_is_made_of_what_is_there():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY")]
    ours = [s for sources in copied if "--from=wheel" not in sources for s in sources]
    assert {s for s in ours if not s.startswith("--")} >= {"src", "constraints.txt"}
    assert all((ROOT / s).exists() for s in ours if not s.startswith("--"))


def test_all_jars_are_part_of_the_image():
    """Its user cannot write where they lie."""
    text = (DEPLOY / "Dockerfile").read_text()
    made = (
        text.index("python -m headrace.kafka.jars"),
        text.index("python -m headrace.spark.runtime.dur"),
    )
    assert text.index("ENV HEADRACE_HOME") < min(made) and max(made) < text.index("USER 185")


def test_a_container_is_an_executor_if_spark_says_so(tmp_path):
    for command in ("java", "headrace"):
        (tmp_path / command).write_text('#!/bin/sh\nprintf "%s\\n" ' + command + ' "$@"\n')
        (tmp_path / command).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), "/usr/bin"]),
        "SPARK_EXECUTOR_MEMORY": "2g",
        "SPARK_DRIVER_URL": "spark://driver",
        "SPARK_EXECUTOR_ID": "7",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_APPLICATION_ID": "app",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.1",
        "SPARK_EXECUTOR_POD_NAME": "pod",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_JAVA_OPT_10": "-Dlast=1",
        "SPARK_JAVA_OPT_2": "-Dfirst=a b=c",
    }

    def told(*arguments: str) -> list[str]:
        script = str(DEPLOY / "entrypoint.sh")
        ran = subprocess.run(
            [script, *arguments], env=environment, capture_output=True, text=True, check=True
        )
        return ran.stdout.splitlines()

    assert told("start", "--port", "1") == ["headrace", "start", "--environment", "--port", "1"]
    assert told("run", "a b.sql") == ["headrace", "run", "--environment", "a b.sql"]
    assert told("-e", "SHOW STREAMS;") == ["headrace", "-e", "SHOW STREAMS;"]
    executor = told("executor")
    assert executor[:5] == ["java", "-Dfirst=a b=c", "-Dlast=1", "-Xms2g", "-Xmx2g"]
    options = dict(zip(executor[8::2], executor[9::2], strict=True))
    assert options["--driver-url"] == "spark://driver"
    assert options["--podName"] == "pod"


def test_the_executors_options_are_those_that_spark_knows():
    jars = Path(find_spec("pyspark").origin).parent / "jars"
    (jar,) = jars.glob("spark-kubernetes_*.jar")
    script = (DEPLOY / "entrypoint.sh").read_text()
    with ZipFile(jar) as classes:
        backend = "org/apache/spark/scheduler/cluster/k8s/KubernetesExecutorBackend$.class"
        names = "org/apache/spark/deploy/k8s/Constants$.class"
        for option in re.findall(r"^  (--\w\S+)", script, re.MULTILINE):
            assert option.encode() in classes.read(backend), option
        for variable in re.findall(r"\bSPARK_\w+", script):
            assert variable.encode() in classes.read(names), variable
