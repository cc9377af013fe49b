"""The command line: refused cases, and the arguments of the roles' functions."""

import errno
import os
import pathlib
import subprocess
import sys
import types
from typing import Any

import pytest

import actorlearner
from actorlearner.agents.configuration import load_config
from actorlearner.cli import main as cli
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.process.role_process import Verbosity
from actorlearner.roles.start import RoleRequest

REPOSITORY = pathlib.Path(actorlearner.__file__).parent.parent
POISON_EXIT_CODE = 77

GOOD = """\
environment:
  suite: gym
  name: Pendulum-v1
agent:
  name: sac
"""


@pytest.fixture
def poisoned(tmp_path: pathlib.Path) -> dict[str, str]:
    """An environment in which a process dies if it imports TensorFlow, TF-Agents or Reverb."""
    for package in ("tensorflow", "tf_agents", "reverb"):
        folder = tmp_path / "poison" / package
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(f"import os\nos._exit({POISON_EXIT_CODE})\n")
    return {**os.environ, "PYTHONPATH": f"{tmp_path / 'poison'}{os.pathsep}{REPOSITORY}"}


@pytest.fixture
def start_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    folder = tmp_path / "start_folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return folder


def python(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("package", ["tensorflow", "tf_agents", "reverb"])
def test_importing_a_poisoned_package_kills_the_process(poisoned: dict[str, str], package: str) -> None:
    assert python(poisoned, "-c", f"import {package}").returncode == POISON_EXIT_CODE


def test_all_problems_are_reported_at_once(
    calls: list[tuple[Any, ...]], start_folder: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (start_folder / "exp.yaml").write_text(GOOD + "learn:\n  batch_szie: 3\n")
    overrides = ("nonsense", "seed=-1", "replay.capacity=10", "environment.name=Pendulum-v7")
    assert cli.main(["local", "--config", "exp.yaml", "--run_dir", "exp.yaml", "--set", *overrides]) == 2
    expected = [
        "--run_dir: 'exp.yaml' cannot be used (",
        '"nonsense": malformed (--set); allowed: section.key=value',
        "learn.batch_szie: unknown key with value 3 (exp.yaml:7); did you mean learn.batch_size?",
        "seed: -1 is out of range (--set); allowed: integer, at least 0",
        "replay.min_size: 1000 cannot work (default); allowed: at most replay.capacity (10)",
        'environment.name: unknown environment "Pendulum-v7" in suite gym (--set)',
    ]
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert (out, calls, len(lines)) == ("", [], len(expected)), err
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(f"actorlearner: error: {start}")
    assert [path.name for path in start_folder.iterdir()] == ["exp.yaml"], "nothing may be made"


def test_a_group_of_learners_is_refused_by_a_command_that_starts_one(
    calls: list[tuple[Any, ...]], capfd: pytest.CaptureFixture[str]
) -> None:
    strategy = "learn.strategy=multi_worker_mirrored"
    assert cli.main(["local", "--config", "exp.yaml", "--set", strategy]) == 2
    problem = (
        "learn.strategy: multi_worker_mirrored cannot work with a command that starts one learner (--set); "
        "allowed: default, mirrored, mirrored:N or tpu"
    )
    assert capfd.readouterr().err == f"actorlearner: error: {problem}\n"
    assert calls == []


@pytest.mark.parametrize(
    ("tf_config", "wrong"),
    [
        (None, "TF_CONFIG is not set"),
        ("{}", "TF_CONFIG has no mapping 'cluster'"),
        (
            '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 2}}',
            "TF_CONFIG has the task index 2 in a cluster with 2 of the job 'worker'",
        ),
    ],
)
def test_a_learner_that_its_group_does_not_know_is_refused(
    calls: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tf_config: str | None,
    wrong: str,
) -> None:
    if tf_config is not None:
        monkeypatch.setenv("TF_CONFIG", tf_config)
    flags = ["--config", "exp.yaml", "--replay_address", "h:1"]
    assert cli.main(["learner", *flags, "--set", "learn.strategy=multi_worker_mirrored"]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    problem = f"learn.strategy: multi_worker_mirrored cannot work: {wrong} (--set); allowed: TF_CONFIG="
    assert line.startswith(f"actorlearner: error: {problem}")
    assert calls == []


def test_other_roles_do_not_need_to_know_the_group(calls: list[tuple[Any, ...]]) -> None:
    flags = ["--config", "exp.yaml", "--set", "learn.strategy=multi_worker_mirrored"]
    assert cli.main(["replay-server", "--port", "8008", *flags]) == 0
    assert cli.main(["eval-actor", "--replay_address", "h:1", *flags]) == 0
    assert [call[0] for call in calls] == ["replay-server", "eval-actor"]


@pytest.mark.parametrize("role", ["learner", "eval-actor", "collect-actor"])
def test_a_replay_server_that_no_actor_would_write_to_is_refused(
    calls: list[tuple[Any, ...]], capfd: pytest.CaptureFixture[str], role: str
) -> None:
    flags = ["--config", "exp.yaml", *(["--actor_index", "0"] if role == "collect-actor" else [])]
    more = ["--replay_address", "h:1,h:2", *flags, "--set"]
    assert cli.main([role, *more, "collect.actors=1"]) == 2
    problem = (
        "actorlearner: error: collect.actors: 1 cannot work with 2 servers in --replay_address (--set); "
        "allowed: at least 2, or training never starts: each actor writes to one server\n"
    )
    assert capfd.readouterr().err == problem
    assert not calls
    assert cli.main([role, *more, "collect.actors=2"]) == 0
    assert [call[0] for call in calls] == [role]


@pytest.mark.parametrize("environment", ["suite: gym, name: Pendulum-v1", "suite: 'my_environments:make'"])
def test_a_good_configuration_gets_past_the_checks(
    poisoned: dict[str, str], start_folder: pathlib.Path, environment: str
) -> None:
    """Nothing is printed; a user's module in the working directory is found, also by a script (-P)."""
    (start_folder / "exp.yaml").write_text(f"environment: {{{environment}}}\nagent: {{name: sac}}\n")
    (start_folder / "my_environments.py").write_text("def make(name): ...\n")
    code = (
        "import sys, types; from actorlearner.cli import main as cli\n"
        "run = sys.modules['actorlearner.local.train'] = types.ModuleType('run')\n"
        "run.run_local = lambda config, run_dir, experiment, network, **output: 55\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    done = python(poisoned, "-P", "-c", code, "local", "--config", "exp.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (55, "", "")


# In this process: flags, dispatch and exit codes.


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, start_folder: pathlib.Path) -> list[tuple[Any, ...]]:
    """The recorded calls of the roles' functions; exp.yaml is a valid configuration."""
    called: list[tuple[Any, ...]] = []

    def start_role(request: RoleRequest) -> int:
        called.append((request.role, request, {"verbosity": request.verbosity, "metrics": request.metrics}))
        return 0

    def run_local(*arguments: Any, **output: Any) -> int:
        called.append(("local", *arguments, *([output] if output else [])))
        return 143

    replace_roles(monkeypatch, start_role, run_local)
    (start_folder / "exp.yaml").write_text(GOOD)
    return called


def replace_roles(monkeypatch: pytest.MonkeyPatch, start_role: Any, run_local: Any) -> None:
    monkeypatch.setattr("actorlearner.cli.roles.start_role", start_role)
    for name, attribute, function in (
        ("actorlearner.local.train", "run_local", run_local),
        ("actorlearner.inspect.doctor.run_checks", "run_doctor", run_local),
    ):
        module = types.ModuleType(name)
        setattr(module, attribute, function)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (["replay-server", "--port", "8008"], {"port": 8008}),
        (["replay-server", "--port=65535"], {"port": 65535}),
        (
            ["collect-actor", "--replay_address", "h:1", "--actor_index", "0"],
            {"replay_address": ("h:1",), "actor_index": 0},
        ),
        (["eval-actor", "--replay_address", "10.0.0.1:65535"], {"replay_address": ("10.0.0.1:65535",)}),
        (["learner", "--replay_address", "[::1]:8008"], {"replay_address": ("[::1]:8008",)}),
        (["learner", "--replay_address", "b:1,a:1,b:2"], {"replay_address": ("b:1", "a:1", "b:2")}),
    ],
)
def test_roles(calls: list[tuple[Any, ...]], flags: list[str], options: dict[str, Any]) -> None:
    assert cli.main([*flags, "--config", "exp.yaml", "--run_dir", "here", "--set", "seed=3"]) == 0
    ((role, request, output),) = calls
    assert (role, request.run_dir, request.options, request.experiment) == (flags[0], "here", options, "exp")
    assert output == {"verbosity": Verbosity.NORMAL, "metrics": None}
    assert request.config.seed == 3
    assert (request.sources["seed"], request.sources["agent.gamma"]) == ("--set", "default")


def test_local_and_repeated_overrides(calls: list[tuple[Any, ...]]) -> None:
    flags = ["--set", "seed=1", "collect.actors=2", "--config", "exp.yaml", "--set", "seed=4"]
    assert cli.main(["local", *flags]) == 143
    ((role, config, run_dir, experiment, network, output),) = calls
    assert (role, run_dir, experiment, network) == ("local", None, "exp", "private")
    assert output == {"verbosity": Verbosity.NORMAL, "metrics": None}
    assert (config.seed, config.collect.actors) == (4, 2)


@pytest.mark.parametrize("verbosity", [Verbosity.QUIET, Verbosity.VERBOSE])
@pytest.mark.parametrize("role", [["local"], ["learner", "--replay_address", "h:1"]])
def test_verbosity(calls: list[tuple[Any, ...]], role: list[str], verbosity: Verbosity) -> None:
    cli.main([*role, "--config", "exp.yaml", f"--{verbosity.value}"])
    assert calls[0][-1]["verbosity"] is verbosity


@pytest.mark.parametrize("role", [["local"], ["learner", "--replay_address", "h:1"]])
def test_metrics_address(calls: list[tuple[Any, ...]], role: list[str]) -> None:
    cli.main([*role, "--config", "exp.yaml", "--metrics_port", "9100"])
    cli.main([*role, "--config", "exp.yaml", "--metrics_port", "9100", "--metrics_host", "0.0.0.0"])
    assert [call[-1]["metrics"] for call in calls] == [("127.0.0.1", 9100), ("0.0.0.0", 9100)]


def test_doctor(calls: list[tuple[Any, ...]]) -> None:
    assert cli.main(["doctor", "--config", "exp.yaml", "--set", "seed=3", "--run_dir", "here"]) == 143
    assert cli.main(["doctor"]) == 143
    (_, config, run_dir), (_, default, no_run_dir) = calls
    assert (config.seed, run_dir, no_run_dir) == (3, "here", None)
    assert default == load_config("sac_pendulum")


@pytest.mark.parametrize("name", ["sac_minitaur", "configs/sac_minitaur.yaml"])
def test_experiment_is_named_after_the_file(
    calls: list[tuple[Any, ...]], start_folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    configs = start_folder / "shipped" / "configs"
    configs.mkdir(parents=True)
    (configs / "sac_minitaur.yaml").write_text(GOOD)
    monkeypatch.setattr("actorlearner.config.shipped._PACKAGE", start_folder / "shipped" / "package")
    assert cli.main(["local", "--config", name]) == 143
    assert calls[0][3] == "sac_minitaur"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], ["the following arguments are required: COMMAND; see 'actorlearner --help'"]),
        (["local"], ["the following arguments are required: --config; see 'actorlearner local --help'"]),
        (
            ["rollout", "nowhere", "--episodes", "0", "--seed", "x"],
            [
                "--episodes: '0' cannot be used; allowed: an integer from 1",
                "--seed: 'x' cannot be used; allowed: an integer from 0",
                "RUN_DIR|POLICY_DIR|CHECKPOINT: 'nowhere' does not exist",
            ],
        ),
        (
            ["video", "nowhere", "--fps", "1001"],
            [
                "--fps: '1001' cannot be used; allowed: an integer from 1 to 1000",
                "RUN_DIR|POLICY_DIR|CHECKPOINT: 'nowhere' does not exist",
            ],
        ),
        (
            ["local", "--config", "exp.yaml", "--quiet", "--verbose"],
            ["--quiet: cannot be used with --verbose; allowed: one of them"],
        ),
        (
            ["local", "--config", "exp.yaml", "--metrics_host", "::1"],
            ["--metrics_host: '::1' cannot be used; allowed: with --metrics_port"],
        ),
        (
            ["local", "--config", "exp.yaml", "--metrics_host", "x", "--metrics_port", "0"],
            [
                "--metrics_port: '0' cannot be used; allowed: an integer from 1 to 65535",
                "--metrics_host: 'x' cannot be used; allowed: an IP address of this machine, as in 127.0.0.1",
            ],
        ),
        (
            ["replay-server", "--config", "exp.yaml", "--port", "8008", "--tls", "no.pem",
             "--metrics_port", "9100"],
            ["--tls: 'no.pem'", "--metrics_port: 9100 cannot be used; allowed: without --tls"],
        ),
        (["local", "--config", "exp.yaml", "--network", "x"], ["--network: 'x' cannot be used; allowed: p"]),
        (
            ["collect-actor", "--config", "exp.yaml", "--replay_address", "nowhere", "--actor_index", "-1",
             "--set", "seed=x"],
            [
                "--replay_address: 'nowhere' cannot be used; allowed: HOST:PORT with a port from 1 to 65535",
                "--actor_index: '-1' cannot be used; allowed: an integer from 0",
                'seed: "x" is of the wrong type (--set); allowed: integer, at least 0',
            ],
        ),
    ],
)  # fmt: skip
def test_bad_usage(
    calls: list[tuple[Any, ...]], capfd: pytest.CaptureFixture[str], flags: list[str], expected: list[str]
) -> None:
    assert cli.main(flags) == 2
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert (out, calls, len(lines)) == ("", [], len(expected))
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(f"actorlearner: error: {start}")


@pytest.mark.parametrize(
    "host", ["h", "replay_1.local", "a-b.c.", "127.0.0.1", "[::1]", "[fe80::1]", "1a", "x" * 63]
)
def test_good_addresses(calls: list[tuple[Any, ...]], host: str) -> None:
    assert cli.main(["learner", "--config", "exp.yaml", f"--replay_address={host}:1"]) == 0
    assert calls[0][1].options == {"replay_address": (f"{host}:1",)}


@pytest.mark.parametrize(
    ("addresses", "allowed"),
    [
        ("h:1,h:0", "HOST:PORT with a port from 1 to 65535"),
        ("h:1,a b:1", "HOST:PORT with a host name, an IPv4 address, or an IPv6 address in brackets"),
        ("h:1,g:1,h:1", "each HOST:PORT only once"),
    ],
)
def test_each_of_several_addresses_is_checked(
    calls: list[tuple[Any, ...]], capfd: pytest.CaptureFixture[str], addresses: str, allowed: str
) -> None:
    for role, *flags in (("learner",), ("eval-actor",), ("collect-actor", "--actor_index", "0")):
        assert cli.main([role, *flags, "--config", "exp.yaml", "--replay_address", addresses]) == 2
        line = f"--replay_address: {addresses!r} cannot be used; allowed: {allowed}"
        assert capfd.readouterr().err == f"actorlearner: error: {line}\n"
    assert calls == []


def test_health_asks_one_server(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["health", "--run_dir", "here", "--replay_address", "h:1,g:1"]) == 2
    line = "--replay_address: 'h:1,g:1' cannot be used; allowed: HOST:PORT with a port from 1 to 65535"
    assert capfd.readouterr().err == f"actorlearner: error: {line}\n"


def test_a_file_named_runs_in_place_of_the_directory(
    calls: list[tuple[Any, ...]], capfd: pytest.CaptureFixture[str]
) -> None:
    pathlib.Path("runs").touch()
    assert cli.main(["local", "--config", "exp.yaml"]) == 2
    assert "error: --run_dir: without it, 'runs' cannot be used (" in capfd.readouterr().err
    assert cli.main(["local", "--config", "exp.yaml", "--run_dir", "here"]) == 143


def test_a_working_directory_that_was_removed(
    calls: list[tuple[Any, ...]], capfd: pytest.CaptureFixture[str], start_folder: pathlib.Path
) -> None:
    gone = start_folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    assert cli.main(["local", "--config", str(start_folder / "exp.yaml")]) == 2
    line = "actorlearner: error: the working directory cannot be used: No such file or directory\n"
    assert capfd.readouterr().err == line


def test_nothing_but_printable_lines_of_bounded_length(
    calls: list[tuple[Any, ...]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["local", "--config", "exp.yaml", "--set", "\x1b[31m\n=1", "x" * 5_000 + "=1"]) == 2
    short, long = capfd.readouterr().err.splitlines()
    assert short.startswith("actorlearner: error: \\x1b[31m: unknown key")
    assert len(long) < 2_100
    assert long.endswith(" learn, evaluate, seed, callbacks")


def test_errors_of_a_role(
    calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*arguments: Any, **output: Any) -> int:
        raise ConfigurationError(["run_dir: of another run", "seed: 0 here, 1 there"])

    def fail(*arguments: Any, **output: Any) -> int:
        raise RunError("the replay server\nis gone")

    replace_roles(monkeypatch, fail, refuse)
    assert cli.main(["replay-server", "--config", "exp.yaml", "--port", "1"]) == 1
    assert capfd.readouterr().err == "actorlearner: error: the replay server is gone\n"
    assert cli.main(["local", "--config", "exp.yaml"]) == 2
    assert capfd.readouterr().err == (
        "actorlearner: error: run_dir: of another run\nactorlearner: error: seed: 0 here, 1 there (default)\n"
    )


def test_standard_output_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["configs"]) == 0


def test_a_disk_that_is_full_is_one_line(
    calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: Any, **output: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/x/metrics/eval.jsonl")

    replace_roles(monkeypatch, fail, fail)
    assert cli.main(["local", "--config", "exp.yaml"]) == 1
    output = "[Errno 28] No space left on device: 'runs/x/metrics/eval.jsonl'"
    assert capfd.readouterr().err == f"actorlearner: error: {output}\n"


def test_a_closed_output_pipe_prints_no_error() -> None:
    """For example `head` in `actorlearner config --config sac_pendulum | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "actorlearner", "config", "--config", "sac_pendulum"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_interrupt_before_a_role_handles_it(
    calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: Any, **output: Any) -> int:
        raise KeyboardInterrupt

    replace_roles(monkeypatch, interrupt, interrupt)
    assert cli.main(["local", "--config", "exp.yaml"]) == 130


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capfd.readouterr().out == f"actorlearner {actorlearner.__version__}\n"


@pytest.mark.parametrize(
    "command", ["local", "replay-server", "collect-actor", "eval-actor", "learner", "doctor"]
)
def test_help(capfd: pytest.CaptureFixture[str], command: str) -> None:
    for flags in (["--help"], [command, "--help"]):
        with pytest.raises(SystemExit) as end:
            cli.main(flags)
        assert end.value.code == 0
        assert f"  actorlearner {command} --config " in capfd.readouterr().out


def test_collect_actors_of_ray_have_no_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--config", "sac_pendulum", "--collect_actors", "1", "--set", "collect.gpus=true"]
    assert cli.main(["ray", *flags]) == 2
    problem = "collect.gpus: true cannot work: Ray hides the GPUs from collect actors (--set); allowed: false"
    assert problem in capsys.readouterr().err
