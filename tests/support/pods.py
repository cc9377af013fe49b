"""The pods of Kubernetes manifests as containers of the engine, without a cluster.

The Service is a name in the network; claims, empty directories and Secrets are volumes. Network policies,
scheduling and the API server are not there. What this does not know in a manifest makes it fail.
"""

import fnmatch
import functools
import ipaddress
import itertools
import json
import re
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.support.containers import Container, Containers, run

Object = dict[str, Any]


def _under(path: str, *fields: str) -> list[str]:
    return [f"{path}.{field}" for field in fields]


_POD = "spec.template.spec"
_CONTAINER = f"{_POD}.containers"
_PROBE = ("exec.command=*", "periodSeconds=*", "timeoutSeconds=*", "failureThreshold=*")
_EVERY = ["apiVersion=*", "kind=*", "metadata.name=*", "metadata.labels.*=*"]
_KNOWN = {
    "ConfigMap": ["data.*=*"],
    "Secret": ["type=Opaque", "data.*=*"],
    "Service": _under("spec", "selector.*=*", "ports.name=*", "ports.port=*", "ports.targetPort=*"),
    "PersistentVolumeClaim": _under("spec", "accessModes=ReadWriteOnce", "resources.requests.storage=*"),
    "NetworkPolicy": ["spec.*"],  # Left out.
    "Job": [
        *_under("spec", "parallelism=*", "backoffLimit=*", "podReplacementPolicy=Failed"),
        *_under("spec.podFailurePolicy.rules", "action=FailJob", "action=Ignore"),
        *_under("spec.podFailurePolicy.rules.onExitCodes", "containerName=*", "operator=In", "values=*"),
        *_under("spec.podFailurePolicy.rules.onPodConditions", "type=DisruptionTarget", "status=True"),
        "spec.template.metadata.labels.*=*",
        *_under(_POD, "restartPolicy=Never", "terminationGracePeriodSeconds=*"),
        *_under(_POD, "automountServiceAccountToken=False", "enableServiceLinks=False"),
        *_under(f"{_POD}.securityContext", "runAsNonRoot=True", "runAsUser=*", "runAsGroup=*", "fsGroup=*"),
        *_under(f"{_POD}.securityContext", "fsGroupChangePolicy=OnRootMismatch"),
        *_under(f"{_POD}.securityContext", "seccompProfile.type=RuntimeDefault"),
        *_under(_CONTAINER, "name=*", "image=*", "args=*", "ports.name=*", "ports.containerPort=*"),
        *_under(_CONTAINER, "env.name=*", "env.valueFrom.fieldRef.fieldPath=status.podIP"),
        *_under(_CONTAINER, "envFrom.configMapRef.name=*"),
        *_under(f"{_CONTAINER}.startupProbe", *_PROBE),
        *_under(f"{_CONTAINER}.readinessProbe", *_PROBE),
        *_under(f"{_CONTAINER}.livenessProbe", *_PROBE),
        # Requests are for the scheduler.
        *_under(f"{_CONTAINER}.resources", "limits.memory=*Gi", "requests.*=*"),
        *_under(f"{_CONTAINER}.securityContext", "allowPrivilegeEscalation=False"),
        *_under(f"{_CONTAINER}.securityContext", "readOnlyRootFilesystem=True", "capabilities.drop=ALL"),
        *_under(_CONTAINER, "volumeMounts.name=*", "volumeMounts.mountPath=*", "volumeMounts.readOnly=True"),
        *_under(f"{_POD}.volumes", "name=*", "emptyDir={}", "persistentVolumeClaim.claimName=*"),
        *_under(f"{_POD}.volumes.secret", "secretName=*", "defaultMode=*"),
    ],
}


def unknown_fields(thing: Object) -> list[str]:
    """Returns the fields of an object, as PATH=VALUE, that a `Cluster` would have to ignore."""
    known = [*_EVERY, *_KNOWN.get(thing["kind"], ())]
    return [field for field in _fields(thing) if not any(fnmatch.fnmatchcase(field, each) for each in known)]


def _fields(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _fields(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from _fields(inner, path)
    else:
        yield f"{path}={value}"


class Pod(Container):
    """A pod with its one container."""

    def __init__(self, identifier: str, job: Object, address: str) -> None:
        super().__init__(identifier)
        self.job: str = job["metadata"]["name"]
        self.address = address
        [self._spec] = job["spec"]["template"]["spec"]["containers"]
        self._rules = job["spec"]["podFailurePolicy"]["rules"]

    def passes(self, probe: str) -> bool:
        """Runs a probe once, as the kubelet does; a pod without this one passes."""
        if probe not in self._spec:
            return True
        command = ["docker", "exec", self.id, *self._spec[probe]["exec"]["command"]]
        limit_s = self._spec[probe]["timeoutSeconds"]
        try:
            return subprocess.run(command, capture_output=True, timeout=limit_s, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def exit_code(self) -> int:
        """Blocks until it has ended."""
        return int(run("docker", "wait", self.id))

    def fails_job(self) -> bool:
        """Blocks until the pod has ended; returns whether the pod failure policy then ends the job."""
        ends = [rule["onExitCodes"] for rule in self._rules if rule["action"] == "FailJob"]
        names = {rule["containerName"] for rule in ends}
        assert names == {self._spec["name"]}
        return any(self.exit_code() in rule["values"] for rule in ends)


class Cluster(Containers):
    """Starts pods, as the controller of jobs and the kubelet do."""

    def __init__(self, objects: Sequence[Object]) -> None:
        unknown = [field for thing in objects for field in unknown_fields(thing)]
        assert not unknown, unknown
        self._objects = {(thing["kind"], thing["metadata"]["name"]): thing for thing in objects}
        self.name = f"pods-{uuid.uuid4().hex[:8]}"
        self._labels = ["--label", f"pods={self.name}"]
        self._count = itertools.count(1)
        self._pods: list[Pod] = []
        self._addresses = self._make_network()

    def start(self, job: str) -> list[Pod]:
        """Starts all pods of a job."""
        return [self._start(job) for _ in range(self._objects["Job", job]["spec"].get("parallelism", 1))]

    def replace(self, pod: Pod) -> Pod:
        """Starts another pod in the place of one that has failed."""
        assert not pod.fails_job()
        self._pods.remove(pod)
        run("docker", "rm", pod.id)
        return self._start(pod.job)

    def wait_until_ready(self, *pods: Pod) -> None:
        """Polls more often than the kubelet; afterwards each pod has passed all of its probes."""

        def is_started(pod: Pod) -> bool:
            assert pod.state["State"]["Running"]
            return pod.passes("startupProbe")

        for pod in pods:
            self.wait(functools.partial(is_started, pod), f"{pod.job} to be started")
            for probe in ("readinessProbe", "livenessProbe"):  # The kubelet allows some failures.
                self.wait(functools.partial(pod.passes, probe), f"the {probe} of {pod.job}")

    def stop(self) -> list[int]:
        """Ends all pods with SIGTERM, after their grace periods with SIGKILL; returns their exit codes."""
        run("docker", "stop", *(pod.id for pod in self._pods), timeout_s=600)
        return [pod.exit_code() for pod in self._pods]

    def remove(self) -> None:
        """Removes everything."""
        for kind, remove in (("ps -a", "rm -f"), ("volume ls", "volume rm"), ("network ls", "network rm")):
            if found := run("docker", *kind.split(), "-q", "--filter", f"label=pods={self.name}"):
                run("docker", *remove.split(), *found.split())

    def describe(self) -> str:
        return "\n".join(f"{pod.job}:\n{pod.log[-2000:]}" for pod in self._pods)

    def _make_network(self) -> Iterator[str]:
        """Makes a network; returns addresses of pods, which Docker gives only in a chosen subnet."""
        make = ["docker", "network", "create", *self._labels]
        run(*make, self.name)
        [network] = json.loads(run("docker", "network", "inspect", self.name))
        subnet = network["IPAM"]["Config"][0]["Subnet"]
        run("docker", "network", "rm", self.name)
        run(*make, "--subnet", subnet, self.name)
        return (str(address) for address in itertools.islice(ipaddress.ip_network(subnet).hosts(), 50, None))

    def _start(self, job_name: str) -> Pod:
        job = self._objects["Job", job_name]
        template = job["spec"]["template"]
        spec, [container] = template["spec"], template["spec"]["containers"]
        context, address = spec["securityContext"], next(self._addresses)
        name = f"{self.name}-{job_name}-{next(self._count)}"
        variables = {
            key: value
            for source in container.get("envFrom", ())
            for key, value in self._objects["ConfigMap", source["configMapRef"]["name"]]["data"].items()
        }
        # Each is status.podIP.
        variables |= {variable["name"]: address for variable in container.get("env", ())}
        assert "$$" not in str(container["args"])  # Would be a "$".
        arguments = [
            re.sub(r"\$\((\w+)\)", lambda found: variables.get(found[1], found[0]), argument)
            for argument in container["args"]
        ]
        memory = container["resources"]["limits"]["memory"].removesuffix("i").lower()  # 2Gi is Docker's 2g.
        options = [
            *(f"--name={name}", f"--hostname={name}", f"--network={self.name}", f"--ip={address}"),
            *(f"--network-alias={service}" for service in self._services(template, container)),
            *(f"--user={context['runAsUser']}:{context['runAsGroup']}", f"--group-add={context['fsGroup']}"),
            *("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--no-healthcheck"),
            *(f"--memory={memory}", f"--memory-swap={memory}"),
            f"--stop-timeout={spec['terminationGracePeriodSeconds']}",
            *(f"--env={key}={value}" for key, value in variables.items()),
            *(f"--mount={mount}" for mount in self._mounts(spec, container, name)),
        ]
        started = run("docker", "run", "--detach", *self._labels, *options, container["image"], *arguments)
        self._pods.append(Pod(started.strip(), job, address))
        return self._pods[-1]

    def _services(self, template: Object, container: Object) -> Iterator[str]:
        """Yields the names of a pod's services, whose ports have to be the container's own."""
        for (kind, name), service in self._objects.items():
            labels = template["metadata"]["labels"].items()
            if kind == "Service" and service["spec"]["selector"].items() <= labels:
                own = {port["name"]: port["containerPort"] for port in container["ports"]}
                assert all(own[port["targetPort"]] == port["port"] for port in service["spec"]["ports"])
                yield name

    def _mounts(self, spec: Object, container: Object, pod: str) -> list[str]:
        """Makes the volumes of a pod; the kubelet gives them to root and fsGroup."""
        group, options, commands = spec["securityContext"]["fsGroup"], [], []
        sources = {}
        for volume in spec["volumes"]:
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            assert claim is None or ("PersistentVolumeClaim", claim) in self._objects
            source = sources[volume["name"]] = f"{self.name}-{claim}" if claim else f"{pod}-{volume['name']}"
            run("docker", "volume", "create", *self._labels, source)
            folder = f"/made/{volume['name']}"
            options += ["--mount", f"type=volume,source={source},target={folder}"]
            commands.append(f"chmod {'2775' if claim else '2777'} {folder}")
            if secret := volume.get("secret"):
                for file, data in self._objects["Secret", secret["secretName"]]["data"].items():
                    commands.append(f"echo '{data}' | base64 -d > {folder}/{file}")
                    commands.append(f"chmod {secret['defaultMode']:o} {folder}/{file}")
            commands.append(f"chown {'' if claim else '-R'} 0:{group} {folder}")
        root = ["docker", "run", "--rm", "--user", "0", *options, "--entrypoint", "sh", container["image"]]
        run(*root, "-c", " && ".join(commands))
        return [
            f"type=volume,source={sources[mount['name']]},target={mount['mountPath']},volume-nocopy"
            + (",readonly" if mount.get("readOnly") else "")
            for mount in container["volumeMounts"]
        ]


@contextmanager
def cluster(objects: Sequence[Object]) -> Iterator[Cluster]:
    """A cluster of which nothing is left afterwards."""
    made = Cluster(objects)
    try:
        yield made
    finally:
        made.remove()
