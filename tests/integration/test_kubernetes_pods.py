"""The pods of the manifests, in a container engine in place of a cluster: they train, restart, and end."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from actorlearner.errors import EXIT_TERMINATED, EXIT_USAGE
from actorlearner.network.certificate import make_certificate, write_certificate
from tests.support.containers import ENDLESS_PENDULUM, knocks_of_a_stranger, run
from tests.support.pods import Cluster, Object, Pod, cluster, unknown_fields
from tests.support.processes import REPOSITORY

pytestmark = [
    pytest.mark.container,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not shutil.which("kubectl"), reason="the pods are not tested: no kubectl"),
]

_ROLES = ("replay-server", "learner", "eval-actor", "collect-actor")
_SERVER = ("replay-server", 8008)


def _render(image: str, folder: Path, config: str = "sac_pendulum") -> list[Object]:
    """Returns the objects of an overlay of the base, with a new certificate."""
    shutil.copytree(REPOSITORY / "launch/kubernetes", folder / "kubernetes", ignore=lambda *_: ["run.pem"])
    write_certificate(folder / "kubernetes/base/run.pem", make_certificate())
    added = ("--set", *ENDLESS_PENDULUM)
    path = "/spec/template/spec/containers/0/args/-"
    arguments = [{"op": "add", "path": path, "value": value} for value in added]
    two = [{"op": "replace", "path": "/spec/parallelism", "value": 2}]
    chosen = [{"op": "replace", "path": "/data/CONFIG", "value": config}]
    overlay = {
        "resources": ["../kubernetes/base"],
        "images": [{"name": "actorlearner", "newName": image}],
        "patches": [
            {"target": {"kind": "Job"}, "patch": json.dumps(arguments)},
            {"target": {"kind": "Job", "name": "collect-actor"}, "patch": json.dumps(two)},
            {"target": {"kind": "ConfigMap", "name": "experiment"}, "patch": json.dumps(chosen)},
        ],
    }
    (folder / "overlay").mkdir()
    (folder / "overlay/kustomization.yaml").write_text(yaml.safe_dump(overlay))
    return list(yaml.safe_load_all(run("kubectl", "kustomize", str(folder / "overlay"))))


@pytest.fixture(name="pods")
def _pods(image: str, tmp_path: Path) -> Iterator[Cluster]:
    with cluster(_render(image, tmp_path)) as pods:
        yield pods


def test_the_pods_of_a_run(image: str, pods: Cluster, tmp_path: Path) -> None:
    [server], [learner], [evaluator], [first, second] = map(pods.start, _ROLES)
    pods.wait_until_ready(server, learner, evaluator, first, second)
    pods.train_on(learner)
    for actor in (first, second):
        assert _indices(actor) == [f"collect-{_index(actor)}.jsonl"]
    _knock(image, pods.name, tmp_path)

    inserted = server.last_record("replay")["inserts"]
    server = _restart(pods, server)
    # It was restored from its last checkpoint; from an empty table it would not be that far yet.
    assert server.last_record("replay")["inserts"] > inserted / 2
    pods.train_on(learner)
    learner = _restart(pods, learner)
    pods.train_on(learner)
    evaluator = _restart(pods, evaluator)
    pods.wait(lambda: _evaluated(evaluator) == [0], "the evaluation of train step 0, once")
    first = _restart(pods, first)
    pods.wait(lambda: _indices(first) == [f"collect-{_index(first)}.jsonl"], "env steps")
    pods.train_on(learner)
    pods.wait_until_ready(server, learner, evaluator, first, second)
    assert pods.stop() == [EXIT_TERMINATED] * 5


def _index(actor: Pod) -> int:
    """The index of a collect actor, which comes from its pod's address."""
    _, *rest = map(int, actor.address.split("."))
    return int.from_bytes(bytes(rest), "big")


def _indices(actor: Pod) -> list[str]:
    return actor.execute("ls", "/run_dir/metrics").split()


def _evaluated(evaluator: Pod) -> list[int]:
    lines = evaluator.execute("cat", "/run_dir/metrics/eval.jsonl").split("\n")[:-1]
    return [json.loads(line)["train_step"] for line in lines]


def _restart(pods: Cluster, pod: Pod) -> Pod:
    """Kills a pod; returns the one that takes its place, once it is ready."""
    run("docker", "kill", pod.id)
    assert pod.exit_code() == 137
    other = pods.replace(pod)
    pods.wait_until_ready(other)
    return other


def _knock(image: str, network: str, folder: Path) -> None:
    """Only holders of the run's certificate get in, even without network policies."""
    knocks = [
        ("tls", *_SERVER, "/folder/kubernetes/base/run.pem"),
        ("tls", *_SERVER),
        ("stock", *_SERVER),
        ("scan", "replay-server"),
    ]
    held, refused, stock, ports = knocks_of_a_stranger(image, network, folder, *knocks)
    assert (held, stock, ports) == ("served", "refused", [8008])
    assert refused != "served"


def test_a_refused_configuration_fails_every_job(image: str, tmp_path: Path) -> None:
    with cluster(_render(image, tmp_path, config="no_such_file")) as pods:
        started = [pod for role in _ROLES for pod in pods.start(role)]
        for pod in started:
            assert pod.exit_code() == EXIT_USAGE, pod.log
            assert "actorlearner: error: no_such_file: no such file (--config)" in pod.log
            assert pod.fails_job()


def test_unknown_manifest_fields_are_found(tmp_path: Path) -> None:
    objects = _render("any", tmp_path)
    assert [field for thing in objects for field in unknown_fields(thing)] == []
    job = next(thing for thing in objects if thing["kind"] == "Job")
    job["spec"]["template"]["spec"]["hostNetwork"] = True
    job["spec"]["template"]["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"] = False
    assert unknown_fields(job) == [
        "spec.template.spec.containers.securityContext.readOnlyRootFilesystem=False",
        "spec.template.spec.hostNetwork=True",
    ]
    assert unknown_fields({"kind": "Pod", "spec": {}}) == ["spec={}"]
