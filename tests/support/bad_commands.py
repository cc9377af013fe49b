"""Command lines that are refused, and names of files, run directories and environments in them."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from actorlearner.agents.configuration import load_config
from actorlearner.records.run_directory import RunDirectory
from tests.support.bad_case import GOOD, LOCAL, Case, from_flags

_CONFIG = ("--config", "{config}")
_HEALTH = ("health", "--run_dir", "{inputs}", "--role")
_COLLECT = ("collect-actor", *_CONFIG, "--replay_address", "localhost:8008", "--actor_index")

_MODULES = {
    "raises": "raise RuntimeError('first\\nsecond')",
    "exits": "raise SystemExit(0)",
    "odd": "class Odd(BaseException): ...\nraise Odd('no Exception')",
    "mute": "class Mute(Exception):\n    def __str__(self): raise ValueError\nraise Mute",
    "broken": "def make(:",
    "number": "make = 3",
    "empty": "print('loud')",
    "lazy": "def __getattr__(name): raise RuntimeError(name)",
    "replaced": "import sys\nsys.modules[__name__] = 3",
    "circular": "from bad_circular import make",
    "endless": "def more(): more()\nmore()",
    "missing": "import no_such_module",
    "strict": "def make(name, *, speed): ...",
}

_USAGE = {
    "nothing": ((), "the following arguments are required: COMMAND"),
    "empty command": (("",), "argument COMMAND: invalid choice: ''"),
    "unknown command": (("lerner",), "argument COMMAND: invalid choice: 'lerner'"),
    "command in capitals": (("Local", *_CONFIG), "argument COMMAND: invalid choice: 'Local'"),
    "abbreviated command": (("loc", *_CONFIG), "argument COMMAND: invalid choice: 'loc'"),
    "two commands": ((*LOCAL, "learner"), "unrecognized arguments: learner"),
    "flag before the command": ((*_CONFIG, "local"), "argument COMMAND: invalid choice"),
    "no configuration": (("local",), "the following arguments are required: --config"),
    "--config without a file": (("local", "--config"), "argument --config: expected one argument"),
    "abbreviated flag": (("local", "--conf", "{config}"), "the following arguments are required: --config"),
    "no --set": ((*LOCAL, "seed=1"), "unrecognized arguments: seed=1; KEY=VALUE has to follow --set"),
    "unknown flag": ((*LOCAL, "--faster"), "unrecognized arguments: --faster"),
    "flag in capitals": ((*LOCAL, "--RUN_DIR", "x"), "unrecognized arguments: --RUN_DIR x"),
    "flag with hyphens": ((*LOCAL, "--run-dir", "x"), "unrecognized arguments: --run-dir x"),
    "flag of another command": ((*LOCAL, "--port", "8008"), "unrecognized arguments: --port 8008"),
    "flag that is not text": ((*LOCAL, "--\udcff"), "unrecognized arguments: --\\udcff"),
    "--set without a key": ((*LOCAL, "--set"), "argument --set: expected at least one argument"),
    "--run_dir without a directory": ((*LOCAL, "--run_dir"), "argument --run_dir: expected one argument"),
    "no port": (("replay-server", *_CONFIG), "the following arguments are required: --port"),
    "no address": (("learner", *_CONFIG), "the following arguments are required: --replay_address"),
    "no address for the eval actor": (("eval-actor", *_CONFIG), "the following arguments are"),
    "no index": (("collect-actor", *_CONFIG, "--replay_address", "h:1"), "the following arguments are"),
    "no directory to look into": (("health",), "the following arguments are required: --run_dir"),
    "configuration for health": (("health", "--run_dir", "x", *_CONFIG), "unrecognized arguments: --config"),
}  # fmt: skip

_FILES = {
    "missing file": ("{inputs}/absent.yaml", "{inputs}/absent.yaml: no such file (--config)"),
    "no name": ("", "'': no such file (--config)"),
    "directory": ("{inputs}", "{inputs}: is a directory (--config)"),
    "root": ("/", "/: is a directory (--config)"),
    "below a file": ("{inputs}/file/exp.yaml", "{inputs}/file/exp.yaml: no such file (--config)"),
    "link to nothing": ("{inputs}/nowhere", "{inputs}/nowhere: no such file (--config)"),
    "link to itself": ("{inputs}/itself", "{inputs}/itself: no such file (--config)"),
    "name too long": ("x" * 300, "x"),
    "misspelt shipped one": ("sac_pendulem", "sac_pendulem: no such file (--config); did you mean sac_"),
    "name that is not text": ("\udcff", "\\udcff: no such file (--config)"),
    "address": ("https://example.com/exp.yaml", "https://example.com/exp.yaml: no such file"),
    "standard input by a hyphen": ("-", "-: no such file"),
    "device without an end": ("/dev/zero", "/dev/zero: is larger than 65536 bytes"),
    "device without a beginning": ("/dev/null", "/dev/null: is empty"),
    "file that cannot be read": ("/proc/self/mem", "/proc/self/mem: cannot be read: "),
}  # fmt: skip

_RUN_DIRS = {
    "no name": ("", "it is empty"),
    "file": ("{inputs}/file", "{inputs}/file is not a directory"),
    "below a file": ("{inputs}/file/run", "{inputs}/file is not a directory"),
    "far below a file": ("{inputs}/file/a/b", "{inputs}/file is not a directory"),
    "link to nothing": ("{inputs}/nowhere", "{inputs}/nowhere: No such file or directory"),
    "below a link to nothing": ("{inputs}/nowhere/run", "{inputs}/nowhere: No such file or directory"),
    "below a link to itself": ("{inputs}/itself/run", "{inputs}/itself: Too many levels of symbolic links"),
    "device": ("/dev/null", "/dev/null is not a directory"),
    "name too long": ("absent/" + "x" * 256, "a name is longer than 255 bytes"),
    "path too long": ("absent/" * 600, "it is longer than 3800 bytes"),
}

_OVERRIDES = {
    "no equals sign": ("seed", '"seed": malformed'),
    "nothing": ("", '"": malformed'),
    "empty key": ("=3", '"=3": malformed'),
    "only an equals sign": ("=", '"=": malformed'),
    "empty part": ("learn..batch_size=3", '"learn..batch_size=3": malformed'),
    "dot at the end": ("learn.=3", '"learn.=3": malformed'),
    "dot at the beginning": (".seed=3", '".seed=3": malformed'),
    "spaces as a key": ("  =3", '"  =3": malformed'),
    "two equals signs": ("seed==3", 'seed: "=3" is of the wrong type'),
    "colon for an equals sign": ("seed: 3", '"seed: 3": malformed'),
    "two in one": ("seed=3,learn.batch_size=4", 'seed: "3,learn.batch_size=4" is of the wrong type'),
    "spaces in the key": ("learn.batch size=3", "learn.batch size: unknown key with value 3"),
    "unicode key": ("lérn.batch_size=3", "lérn.batch_size: unknown key with value 3 (--set); did you mean"),
    "full-width letters": ("\uff53eed=3", "\uff53eed: unknown key with value 3"),
    "full-width digits": ("seed=\uff11", 'seed: "\uff11" is of the wrong type'),
    "minus of another kind": ("seed=\u22121", 'seed: "\u22121" is of the wrong type'),
    "brackets": ("learn[batch_size]=3", "learn[batch_size]: unknown key"),
    "slash": ("learn/batch_size=3", "learn/batch_size: unknown key"),
    "plus in front": ("+seed=3", "+seed: unknown key with value 3"),
    "tilde in front": ("~seed=3", "~seed: unknown key with value 3"),
    "key inside a key": ("learn.batch_size.x=3", "learn.batch_size.x: unknown key"),
    "key inside no key": ("seed.x=3", "seed.x: unknown key"),
    "no value": ("seed=", "seed: null is of the wrong type"),
    "broken YAML": ("seed=[1", 'seed: "[1" is broken YAML'),
    "control character": ("seed=\x07", 'seed: "\\u0007" is broken YAML'),
    "bytes that are not text": ("seed=\udcff", "seed: "),
    "key that is not text": ("\udcff=3", "\\udcff: unknown key with value 3"),
    "new line": ("seed=3\nlearn.batch_size=4", "seed: "),
    "deep": ("environment.kwargs" + ".a" * 500 + "=1", '"environment.kwargs.a.a'),
    "deep value": ("environment.kwargs.a=" + "[" * 100 + "]" * 100, "environment.kwargs.a: "),
    "long": ("seed=" + "1" * 70_000, "seed: "),
}

_PORTS = ("0", "65536", "-1", "80.5", "1e3", "http", "", " 80", "0x50", "8_0", "²", "9" * 5_000)

_ADDRESSES = (
    "", "host", "host:", ":8008", "host:0", "host:65536", "host:-1", "host:x", "host:80:80", "a:1,a:1",
    "a b:1", "http://host:80", "unix:/tmp/socket", "::1:8008", "[::1]", "[:::]:1", "[host]:1", "256.0.0.1:1",
    "1.2.3:1", "a..b:1", ".:1", ".a:1", "-:1", "-a:1", "a-:1", "é:1", "$(host):1", "\udcff:1",
    "x" * 300 + ":1", "x" * 64 + ":1", "x." * 127 + "x:1", "[127.0.0.1]:1", "[::1]x:1",
    "a:1,", ",a:1", "a:1,,b:1", "a:1, b:1", "a:1;b:1", "a:1,b:1,a:1",
)  # fmt: skip

_SUITES = {
    "unknown": ("mujoco", 'environment.suite: unknown suite "mujoco"'),
    "in capitals": ("Gym", 'environment.suite: unknown suite "Gym"'),
    "empty": ("''", 'environment.suite: unknown suite ""'),
    "path": ("my/module.py:make", 'environment.suite: unknown suite "my/module.py:make"'),
    "module without a callable": ("os.path", 'environment.suite: unknown suite "os.path"'),
    "two callables": ("os:a:b", 'environment.suite: unknown suite "os:a:b"'),
    "callable inside a callable": ("os:path.join", 'environment.suite: unknown suite "os:path.join"'),
    "relative module": (".envs:make", 'environment.suite: unknown suite ".envs:make"'),
    "missing module": ("no_such_module:make", "environment.suite: "),
    "missing module in a package": ("os.no_such_module:make", "environment.suite: "),
    "keyword as a module": ("class:make", "environment.suite: "),
    "missing callable": ("os:no_such_callable", "environment.suite: "),
    "module as a callable": ("os:path", "environment.suite: "),
}

_NAMES = (
    ("gym", "Pendulum-v7"), ("gym", "Pendulum"), ("gym", "pendulum-v1"), ("gym", "''"), ("gym", "' '"),
    ("gym", "gym:Pendulum-v7"), ("gym", "../Pendulum-v1"), ("gym", "Ant-v3"),
    ("gym", "Pendulum\u2010v1"), ("gym", "x" * 10_000), ("pybullet", "MinitaurBulletEnv-v9"),
    ("pybullet", "Minitaur"), ("pybullet", "''"),
)  # fmt: skip


def prepare(inputs: Path) -> None:
    """Creates the inputs of the command lines; `inputs` must be on the path of Python's modules."""
    (inputs / "file").write_text("a file")
    (inputs / "nowhere").symlink_to("target")
    (inputs / "itself").symlink_to("itself")
    for name, text in _MODULES.items():
        (inputs / f"bad_{name}.py").write_text(text + "\n")
    good = inputs / "good.yaml"
    good.write_text(GOOD)
    for name, overrides in (("other_run", ["seed=9"]), ("longer_run", ["learn.train_steps=100001"])):
        RunDirectory(inputs / name).prepare(load_config(str(good), overrides))
    for name in ("spoilt_run", "cut_run", "older_run"):
        RunDirectory(inputs / name).prepare(load_config(str(good)))
    (inputs / "spoilt_run" / "config.yaml").write_text("learn: {batch_size: many}\n")
    (inputs / "cut_run" / "config.yaml").write_text("")
    (inputs / "older_run" / "manifest.json").write_text("{")


def command_cases() -> Iterator[Case]:
    """Yields every kind of mistake on a command line."""
    for name, (arguments, expected) in _USAGE.items():
        yield Case("usage", name, (expected,), arguments=arguments)
    for name, (path, expected) in _FILES.items():
        yield Case("--config", name, (expected,), None, ("local", "--config", path))
    for name, (path, reason) in _RUN_DIRS.items():
        # Long lines are cut in the middle.
        expected = (
            f"--run_dir: {path!r} cannot be used ({reason}" if len(path) < 500 else "--run_dir: 'absent/"
        )
        yield Case("--run_dir", name, (expected,), arguments=(*LOCAL, "--run_dir", path))
    for name, (override, expected) in _OVERRIDES.items():
        yield from_flags("--set", name, expected, override)
    yield from_flags("--set", "spaces around the equals sign", '"seed": malformed', "seed", "=", "3")
    yield from_flags("--set", "last of several", "seed: -1 is out of range", "seed=1", "seed=-1")
    yield from_flags("--set", "section and key", "learn: 3 given for a", "learn.batch_size=1", "learn=3")
    for port in _PORTS:
        arguments = ("replay-server", *_CONFIG, f"--port={port}")
        expected = f"--port: {port!r} cannot be used; allowed: an integer from 1 to 65535"
        yield Case("--port", port[:20], (expected[:300],), arguments=arguments)
    for address in _ADDRESSES:
        arguments = ("learner", *_CONFIG, f"--replay_address={address}")
        yield Case(
            "--replay_address",
            f"{address[:20]} ({len(address)})",
            ("--replay_address: ",),
            arguments=arguments,
        )
    for index in ("-1", "x", "", "1.5", "1e2", "²", "9" * 10):
        yield Case(
            "--actor_index", index, (f"--actor_index: {index!r} cannot",), arguments=(*_COLLECT, index)
        )
    for role in ("", "Learner", "actor", "collect-actor-0", "local", "learner,eval-actor", "\udcff"):
        yield Case("--role", role, (f"--role: {role!r} cannot be used"[:300],), arguments=(*_HEALTH, role))
    address = ("--replay_address", "host:8008")
    expected = "--replay_address: 'host:8008' cannot be used; allowed: for the replay-server"
    yield Case("--replay_address", "of a learner", (expected,), arguments=(*_HEALTH, "learner", *address))


def environment_cases() -> Iterator[Case]:
    """Yields suites and names that do not exist, and modules that cannot be used."""
    for name, (suite, expected) in _SUITES.items():
        yield from_flags("environment", f"suite {name}", expected, f"environment.suite={suite}")
    named = ("environment.suite=os:getpid", "environment.name=A")
    yield from_flags("environment", "suite takes no name", "environment.name: ", *named)
    for module in _MODULES:
        key = "environment.kwargs" if module == "strict" else "environment.suite"
        flags = (f"environment.suite=bad_{module}:make", "environment.kwargs.sped=1")
        yield from_flags("environment", f"module that is {module}", f"{key}: ", *flags)
    for suite, name in _NAMES:
        flags = (f"environment.suite={suite}", f"environment.name={name}")
        yield from_flags("environment", f"{suite} {name[:20]}", "environment.name: ", *flags)
    # Not in a process that has imported pybullet_envs, which adds its environments to gym's.
    case = from_flags(
        "environment", "gym Minitaur", "environment.name: ", "environment.name=MinitaurBulletEnv-v0"
    )
    yield dataclasses.replace(case, in_process=False)


def run_cases() -> Iterator[Case]:
    """Yields run directories of other runs, which only the role itself reads."""
    for name, expected in (
        ("other_run", "--run_dir: {inputs}/other_run holds a run of another configuration: seed: 0 here, 9"),
        ("longer_run", "--run_dir: {inputs}/longer_run holds a run of another configuration: learn.train_"),
        ("spoilt_run", "learn.batch_size: "),
        ("cut_run", "{inputs}/cut_run/config.yaml: is empty"),
    ):
        for role in ("local", "replay-server"):
            port = () if role == "local" else ("--port", "8008")
            arguments = (role, *_CONFIG, *port, "--run_dir", f"{{inputs}}/{name}")
            yield Case("other run", f"{name} {role}", (expected,), arguments=arguments, in_process=False)
    arguments = (*LOCAL, "--run_dir", "{inputs}/older_run", "--set", "learn.train_steps=100001")
    expected = "--run_dir: {inputs}/older_run/manifest.json cannot be read"
    yield Case("other run", "manifest of no run", (expected,), arguments=arguments, in_process=False)
