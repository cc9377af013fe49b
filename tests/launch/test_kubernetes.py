"""The manifests: they match Kubernetes' own schemas, and their parts are consistent."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from actorlearner.cli.main import make_parser
from actorlearner.errors import EXIT_USAGE
from tests.support.processes import REPOSITORY

_FOLDER = REPOSITORY / "launch" / "kubernetes"
_VERSIONS = ("1.30", "1.37")
_ROLES = ("replay-server", "collect-actor", "eval-actor", "learner")

Object = dict[str, Any]


def _kustomization(folder: str) -> Object:
    return {**yaml.safe_load((_FOLDER / folder / "kustomization.yaml").read_text())}


def _base() -> Iterator[Object]:
    for name in _kustomization("base")["resources"]:
        yield from yaml.safe_load_all((_FOLDER / "base" / name).read_text())


def _gpu() -> Iterator[Object]:
    patches = [
        yaml.safe_load((_FOLDER / "gpu" / p["path"]).read_text()) for p in _kustomization("gpu")["patches"]
    ]
    unused = {(patch["kind"], patch["metadata"]["name"]) for patch in patches}
    for thing in _base():
        for patch in patches:
            if (patch["kind"], patch["metadata"]["name"]) == (thing["kind"], thing["metadata"]["name"]):
                thing = _merged(thing, patch)
                unused.remove((thing["kind"], thing["metadata"]["name"]))
        yield thing
    assert not unused


def _merged(there: Any, patch: Any) -> Any:
    """Merges two objects as kustomize does for these patches: lists of named items are merged by name."""
    if isinstance(there, dict) and isinstance(patch, dict):
        both = {key: _merged(there[key], patch[key]) for key in there.keys() & patch.keys()}
        return there | patch | both
    if isinstance(there, list) and all("name" in thing for thing in (*there, *patch)):
        named = {thing["name"]: thing for thing in there}
        return list((named | {t["name"]: _merged(named.get(t["name"], {}), t) for t in patch}).values())
    return patch


def _pods(things: Iterator[Object]) -> dict[str, Object]:
    """The pod of each workload, by its name."""
    return {t["metadata"]["name"]: t["spec"]["template"] for t in things if t["kind"] == "Job"}


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("folder", ["base", "gpu"])
def test_every_object_is_what_its_schema_says(folder: str, version: str) -> None:
    things = list(_base() if folder == "base" else _gpu())
    assert len(things) >= 9
    for thing in things:
        kubernetes_validate.validate(thing, version, strict=True)


def test_a_misspelt_key_would_be_found() -> None:
    for thing in _base():
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(thing | {"specs": {}}, _VERSIONS[0], strict=True)


def test_every_file_is_listed() -> None:
    for folder in ("base", "gpu"):
        there = {path.name for path in (_FOLDER / folder).iterdir()} - {"kustomization.yaml", "run.pem"}
        kustomization = _kustomization(folder)
        patches = [patch["path"] for patch in kustomization.get("patches", [])]
        listed = {name for name in (*kustomization["resources"], *patches) if not name.startswith("..")}
        assert there == listed


def test_every_role_is_started_and_probed_as_the_command_line_wants_it() -> None:
    pods = _pods(_base())
    assert sorted(pods) == sorted(_ROLES)
    for role, pod in pods.items():
        [container] = pod["spec"]["containers"]
        assert make_parser().parse_args(_arguments(role, container)).command == role
        for probe in ("startupProbe", "livenessProbe"):
            program, *asked = container[probe]["exec"]["command"]
            read = make_parser().parse_args(asked)
            assert (program, read.command, read.role, read.run_dir) == (
                "actorlearner", "health", role, "/run_dir",
            )  # fmt: skip


def _arguments(role: str, container: Object) -> list[str]:
    """The arguments of a container, and the index that launch/container.py adds."""
    settings = next(t["data"] for t in _base() if t["kind"] == "ConfigMap")
    arguments = [argument.replace("$(CONFIG)", settings["CONFIG"]) for argument in container["args"]]
    return [*arguments, *(["--actor_index", "0"] if role == "collect-actor" else [])]


def test_a_refused_configuration_ends_the_job() -> None:
    jobs = {thing["metadata"]["name"]: thing["spec"] for thing in _gpu() if thing["kind"] == "Job"}
    assert sorted(jobs) == sorted(_ROLES)
    for role, job in jobs.items():
        pod = job["template"]["spec"]
        assert pod["restartPolicy"] == "Never"  # Kubernetes refuses a pod failure policy otherwise.
        ends = [rule for rule in job["podFailurePolicy"]["rules"] if rule["action"] == "FailJob"]
        assert ends == [
            {
                "action": "FailJob",
                "onExitCodes": {"containerName": role, "operator": "In", "values": [EXIT_USAGE]},
            }
        ]
        assert [container["name"] for container in pod["containers"]] == [role]


def test_no_role_is_root_or_without_limits() -> None:
    for pod in _pods(_base()).values():
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
        [container] = pod["spec"]["containers"]
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert "memory" in container["resources"]["limits"]


def test_every_role_can_read_the_certificate_and_requires_it() -> None:
    [secret] = _kustomization("base")["secretGenerator"]
    [file] = secret["files"]
    for role, pod in _pods(_base()).items():
        [source] = [volume["secret"] for volume in pod["spec"]["volumes"] if "secret" in volume]
        assert source == {"secretName": secret["name"], "defaultMode": 0o440}
        assert pod["spec"]["securityContext"]["fsGroup"] == pod["spec"]["securityContext"]["runAsGroup"]
        [container] = pod["spec"]["containers"]
        assert {"name": "certificate", "mountPath": "/certificate", "readOnly": True} in container[
            "volumeMounts"
        ]
        assert make_parser().parse_args(_arguments(role, container)).tls == f"/certificate/{file}"
        if role == "replay-server":  # The other probes do not connect to it.
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                read = make_parser().parse_args(container[probe]["exec"]["command"][1:])
                assert (read.replay_address, read.tls) == ("localhost:8008", f"/certificate/{file}")


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
@pytest.mark.parametrize("folder", ["base", "gpu"])
def test_the_certificate_is_the_file_beside_the_base(folder: str, tmp_path: Path) -> None:
    copied = tmp_path / "kubernetes"
    shutil.copytree(_FOLDER, copied, ignore=shutil.ignore_patterns("run.pem"))
    command = ["kubectl", "kustomize", str(copied / folder)]
    missing = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert missing.returncode != 0
    assert f"{copied}/base/run.pem: no such file or directory" in missing.stderr.replace("' ", "")
    (copied / "base" / "run.pem").write_text("both")
    rendered = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    [secret] = [thing for thing in yaml.safe_load_all(rendered) if thing["kind"] == "Secret"]
    assert (secret["metadata"]["name"], secret["data"]) == ("certificate", {"run.pem": "Ym90aA=="})


def test_only_the_roles_reach_the_replay_server() -> None:
    policies = {t["metadata"]["name"]: t["spec"] for t in _base() if t["kind"] == "NetworkPolicy"}
    for role, pod in _pods(_base()).items():
        labels = pod["metadata"]["labels"].items()
        assert labels >= policies["roles"]["podSelector"]["matchLabels"].items()
        chosen = policies["replay-server"]["podSelector"]["matchLabels"].items() <= labels
        assert chosen == (role == "replay-server")
    assert policies["roles"]["ingress"] == []
    [service] = [t for t in _base() if t["kind"] == "Service"]
    assert service["spec"]["selector"] == policies["replay-server"]["podSelector"]["matchLabels"]
    [rule] = policies["replay-server"]["ingress"]
    assert rule["from"] == [{"podSelector": policies["roles"]["podSelector"]}]
    assert rule["ports"] == [{"protocol": "TCP", "port": service["spec"]["ports"][0]["port"]}]


def test_a_gpu_is_for_the_learner_alone() -> None:
    wanted = {
        role: pod["spec"]["containers"][0]["resources"]["limits"].get("nvidia.com/gpu", 0)
        for role, pod in _pods(_gpu()).items()
    }
    assert wanted == {"replay-server": 0, "collect-actor": 0, "eval-actor": 0, "learner": 1}
    assert _pods(_gpu())["learner"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
