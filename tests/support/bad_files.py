"""Damaged files, and files that are valid YAML but not a configuration."""

import random
from collections.abc import Iterator

from tests.support.bad_case import GOOD, Case, from_text

_SEED = 20_240_229
_MUTANTS = 60

_FILE = "{config}"
_KWARGS = GOOD.replace("Pendulum-v1", "Pendulum-v1, kwargs: {a: %s}")


def _bomb(nest: str) -> str:
    """Returns nested YAML aliases that expand to a hundred million values."""
    lines = ["k0: &k0 {x: 1}"]
    for level in range(1, 9):
        lines.append(f"k{level}: &k{level} " + nest % ", ".join([f"*k{level - 1}"] * 10))
    return GOOD + "\n".join(lines)


_TEXTS = {
    "empty": ("", f"{_FILE}: is empty"),
    "only a comment": ("# nothing\n", f"{_FILE}: is empty"),
    "only a document marker": ("---\n", f"{_FILE}: "),
    "unclosed bracket": (GOOD + "seed: [1\n", f"{_FILE}:"),
    "unclosed brace": (GOOD + "learn: {batch_size: 3\n", f"{_FILE}:"),
    "unclosed quote": (GOOD + "seed: '1\n", f"{_FILE}:"),
    "bracket too many": (GOOD + "seed: 1]\n", "seed: "),
    "tab as indentation": (GOOD + "learn:\n\tbatch_size: 3\n", f"{_FILE}:4:1: broken YAML"),
    "bad indentation": (GOOD + "learn:\n    batch_size: 3\n  train_steps: 1\n", f"{_FILE}:5:"),
    "colon too many": (GOOD + "seed: 1: 2\n", f"{_FILE}:3:"),
    "text between keys": (GOOD + "nonsense\n", f"{_FILE}:"),
    "key without a value": (GOOD + "seed:\n", "seed: null is of the wrong type"),
    "no space after the colon": (GOOD + "seed:1\n", f"{_FILE}:"),
    "two documents": (GOOD + "---\n" + GOOD, f"{_FILE}:3:1: broken YAML"),
    "another version of YAML": ("%YAML 3.0\n---\n" + GOOD, f"{_FILE}:1:1: broken YAML"),
    "every key twice": (GOOD + GOOD, "environment: given twice, first in line 1"),
    "key twice in a section": (GOOD + "learn: {n: 1, n: 2}\n", "learn.n: given twice"),
    "key twice in kwargs": (_KWARGS % "1, a: 2", "environment.kwargs.a: given twice"),
    "list": ("- seed: 1\n", f"{_FILE}: is a list"),
    "text": ("seed\n", f"{_FILE}: is a single value"),
    "number": ("3\n", f"{_FILE}: is a single value"),
    "null": ("null\n", f"{_FILE}: is empty"),
    "set": ("!!set {seed}\n", f"{_FILE}: is a "),
    "JSON list": ('["seed", 1]\n', f"{_FILE}: is a list"),
    "INI": ("[environment]\nname = x\n", f"{_FILE}:"),
    "Python": ("import os\nos.system('true')\n", f"{_FILE}: is a single value"),
    "Python object": (GOOD + "seed: !!python/object/apply:os.getpid []\n", f"{_FILE}:3:7: broken YAML"),
    "unknown tag": (GOOD + "seed: !mine 3\n", f"{_FILE}:3:7: broken YAML"),
    "tag that does not fit": (GOOD + "seed: !!int twelve\n", f"{_FILE}:3:7: broken YAML"),
    "timestamp that is none": (GOOD + "seed: !!timestamp today\n", f"{_FILE}:3:7: broken YAML"),
    "escape that is none": (GOOD + 'seed: "\\x"\n', f"{_FILE}:3:"),
    "character beyond Unicode": (GOOD + 'seed: "\\U00110000"\n', f"{_FILE}"),
    "half a character": (_KWARGS % '"\\ud800"', 'environment.kwargs: {"a": "\\ud800"} has a character'),
    "undefined alias": (GOOD + "seed: *nowhere\n", f"{_FILE}:3:7: broken YAML"),
    "alias of itself": (GOOD + "seed: &a [*a]\n", f"{_FILE}: broken YAML: nested more than 20"),
    "alias of itself in a mapping": (_KWARGS % "&a {b: *a}", f"{_FILE}: broken YAML: nested more"),
    "merge of itself": (GOOD + "learn: &a {<<: *a}\n", f"{_FILE}: broken YAML: nested more"),
    "merge of a number": (GOOD + "learn: {<<: 3}\n", f"{_FILE}:3:"),
    "bomb of aliases": (_bomb("[%s]"), f"{_FILE}: broken YAML: more than 10000 values"),
    "bomb of merges": (_bomb("{<<: [%s]}"), f"{_FILE}: broken YAML: more than 10000 values"),
    "mapping as a key": (GOOD + "{a: b}: 1\n", f"{_FILE}:3:1: broken YAML"),
    "list as a key": (GOOD + "? [a]\n: 1\n", f"{_FILE}:3:3: broken YAML"),
    "number as a key": (GOOD + "1: 2\n", "1: unknown key with value 2"),
    "null as a key": (GOOD + "null: 2\n", "null: unknown key with value 2"),
    "control characters as a key": (GOOD + '"\\e[31m\\a": 2\n', "\\x1b[31m\\x07: unknown key"),
    "key with a dot": (GOOD + "learn.batch_size: 3\n", "learn.batch_size: written with a dot"),
    "200 levels of lists": (_KWARGS % ("[" * 200 + "]" * 200), f"{_FILE}: broken YAML: nested more than 20"),
    "200 levels of mappings": (_KWARGS % ("{a: " * 200 + "1" + "}" * 200), f"{_FILE}: broken YAML: nested"),
    "2,000 levels": (_KWARGS % ("[" * 2_000 + "]" * 2_000), f"{_FILE}: broken YAML: nested more than 20"),
    "30,000 brackets": (GOOD + "seed: " + "[" * 30_000, f"{_FILE}: broken YAML: nested more than 20"),
    "30,000 question marks": (GOOD + "? " * 30_000, f"{_FILE}: broken YAML: nested more than 20"),
    "20,000 values": (GOOD + "seed: [" + "1, " * 20_000 + "]\n", f"{_FILE}: broken YAML: more than 10000"),
    "5,000 unknown keys": (GOOD + "".join(f"k{i}: 1\n" for i in range(5_000)), "k0: unknown key"),
    "60,000 characters of a key": (GOOD + "k" * 60_000 + ": 1\n", f"{_FILE}:3:"),
    "too large": (GOOD + "#" * 70_000, f"{_FILE}: is larger than 65536 bytes"),
    "text for a number": (GOOD + "seed: ${learn.batch_size}\n", 'seed: "${learn.batch_size}" is of the'),
    "no agent": (GOOD.splitlines()[0] + "\n", "agent.name: is not given"),
}  # fmt: skip

_BYTES = {
    "random bytes": (random.Random(_SEED).randbytes(2_000), f"{_FILE}: is not UTF-8 text"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), f"{_FILE}: is not UTF-8 text (byte 0)"),
    "archive": (b"PK\x03\x04" + bytes(100), f"{_FILE}: broken YAML: special characters"),
    "zeros": (bytes(1_000), f"{_FILE}: broken YAML: special characters"),
    "Latin-1": (GOOD.encode() + "# é\n".encode("latin-1"), f"{_FILE}: is not UTF-8 text"),
    "UTF-16": (GOOD.encode("utf-16"), f"{_FILE}: is not UTF-8 text (byte 0)"),
    "UTF-16 without a mark": (GOOD.encode("utf-16-le"), f"{_FILE}: broken YAML: special characters"),
    "UTF-32": (GOOD.encode("utf-32"), f"{_FILE}: is not UTF-8 text (byte 0)"),
    "only a byte order mark": (b"\xef\xbb\xbf", f"{_FILE}: is empty"),
    "cut character": (GOOD.encode() + b"# \xc3", f"{_FILE}: is not UTF-8 text"),
}

_NEVER_YAML = ("]", "}", "@here", "`here`", "key: value: value", "? [", "'", "\x07", "\ufffe")


def file_cases() -> Iterator[Case]:
    """Yields each kind of damage once."""
    for name, (text, expected) in _TEXTS.items():
        yield from_text("file", name, expected, text)
    for name, (content, expected) in _BYTES.items():
        yield Case("file", name, (expected,), content)


def mutated_files() -> Iterator[Case]:
    """Yields good files with damage at a random place that is wrong anywhere; always the same."""
    chance = random.Random(_SEED)
    lines = (GOOD + "learn:\n  batch_size: 64\n  train_steps: 1000\nseed: 3\n").splitlines(True)
    for number in range(_MUTANTS):
        if number % 3 == 0:
            content = "".join(lines).encode()
            place = chance.randrange(len(content))
            damaged = content[:place] + chance.choice((b"\xff", b"\0", b"\xc0", b"\x1b")) + content[place:]
        elif number % 3 == 1:
            place = chance.randrange(len(lines) + 1)
            damaged = "".join([*lines[:place], f"{chance.choice(_NEVER_YAML)}\n", *lines[place:]]).encode()
        else:
            # A section may be given once, wherever the second stands.
            place = chance.choice((0, 1, 2, 5, 6))
            damaged = "".join(
                [*lines[:place], chance.choice((lines[0], lines[1], lines[5])), *lines[place:]]
            ).encode()
        yield Case("mutated file", str(number), ("",), damaged)
