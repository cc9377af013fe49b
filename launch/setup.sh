#!/usr/bin/env bash
# setup.sh [requirements-dev.lock]: makes .venv, with exactly what requirements.lock names, or with the developers' tools
# too; instant when nothing is missing. The Makefile calls it.
#
# .venv/.ready holds this directory, a sum of the files that say what belongs in .venv, and the lock file that was
# installed. It is written last, so that an interrupted set-up is never taken for a finished one.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Whether .venv has every pinned version and this checkout as an editable install.
read -r -d '' CHECK <<'PYTHON' || :
import importlib.metadata, json, pathlib, re, sys

for line in open(sys.argv[1], encoding="utf-8"):
    pin = re.match(r"([\w.-]+)==(\S+)", line)
    assert not pin or importlib.metadata.version(pin[1]) == pin[2], line
origin = json.loads(importlib.metadata.distribution("actorlearner").read_text("direct_url.json"))
assert origin["dir_info"]["editable"] and origin["url"] == pathlib.Path.cwd().resolve().as_uri(), origin
assert pathlib.Path(".venv/bin/actorlearner").exists()
PYTHON

need="actorlearner needs CPython 3.11 on Linux x86-64 (dm-reverb 0.14.0 has no wheels for a newer Python or elsewhere)"
with_uv="uv venv --seed --python 3.11 .venv && uv pip install --python .venv -r requirements.lock -e ."
user=requirements.lock
dev=requirements-dev.lock # holds all of the other as well
lock=${1:-$user}
fail() { printf '%s\n' "$*" >&2; exit 1; }
describe() { "$1" -c 'import platform as p; print(p.python_implementation(), p.python_version())' 2>&1 | tail -n 1; }
fits() { "$1" -c 'import sys; sys.exit(sys.implementation.name != "cpython" or sys.version_info[:2] != (3, 11))' \
  >/dev/null 2>&1; }
here=$(pwd -P)
sum=$(cat $user $dev pyproject.toml | cksum)
state() { printf '%s\n' "$here" "$sum" "$1"; }
ready() {
  local found
  found=$(cat .venv/.ready 2>/dev/null) && [ -x .venv/bin/python ] && [ -x .venv/bin/actorlearner ] || return 1
  [ "$found" = "$(state $lock)" ] || [ "$found" = "$(state $dev)" ]
}
finish() { rm -f .venv/.incomplete; state $lock >.venv/.ready.new; mv .venv/.ready.new .venv/.ready; }
ready && exit 0

case "$(uname -s) $(uname -m)" in
  "Linux x86_64") ;;
  *) fail "$need; found $(uname -s) $(uname -m) — use a container or a virtual machine of that kind" ;;
esac

# One set-up at a time: a second waits for the first.
exec 9<$user
flock -n 9 2>/dev/null || [ $? -ne 1 ] || { echo "waiting for another set-up of .venv ..."; flock 9; }
ready && exit 0
# An environment that has the developers' tools keeps them up to date.
[ "$(tail -n 1 .venv/.ready 2>/dev/null)" != $dev ] || lock=$dev

if [ -x .venv/bin/python ] && [ ! -e .venv/.incomplete ]; then
  fits .venv/bin/python ||
    fail "$need; found $(describe .venv/bin/python) in .venv — remove .venv and run make setup again"
  if [ ! -e .venv/.ready ] && .venv/bin/python -c "$CHECK" $lock 2>/dev/null; then
    finish  # made by other means, with the very same versions
    exit 0
  fi
fi

python=.venv/bin/python
if [ ! -x $python ] || [ -e .venv/.incomplete ] ||
  { [ -e .venv/.ready ] && [ "$(head -n 1 .venv/.ready)" != "$here" ]; }; then
  base=
  found=
  for candidate in ${PYTHON:-python3.11 python3 python}; do
    command -v "$candidate" >/dev/null || continue
    found=${found:-$(describe "$candidate")}
    if fits "$candidate"; then base=$candidate; break; fi
  done
  [ -n "$base" ] ||
    fail "$need; found ${found:-no ${PYTHON:-python3.11}} — install python3.11 or run: $with_uv"
  "$base" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$base has no venv module — install python3.11-venv or run: $with_uv"
  echo "setting up .venv (about a minute) ..."
  mkdir -p .venv
  : >.venv/.incomplete
  find .venv/ -mindepth 1 -maxdepth 1 ! -name .incomplete -exec rm -rf {} +
else
  base=
  if [ -e .venv/.ready ]; then echo "bringing .venv up to date ..."; else echo "setting up .venv (about a minute) ..."; fi
  : >.venv/.incomplete
  rm -f .venv/.ready
fi

# Each command runs in its own process group (set -m): `stop` interrupts the whole group and waits until it has
# cleaned up.
child=
stop() { trap '' INT TERM; [ -z "$child" ] || { kill -INT -- "-$child"; wait "$child"; } 2>/dev/null || :; exit "$1"; }
trap 'stop 130' INT
trap 'stop 143' TERM
log=.venv/setup.log
: >$log
run() {
  printf '$ %s\n' "$*" >>$log
  set -m
  "$@" >>$log 2>&1 </dev/null &
  child=$!
  set +m
  wait "$child" ||
    { tail -n 30 $log >&2; fail "setting up .venv failed at: ${*%%$'\n'*} (all of its output: $log)"; }
  child=
}
pip() { run $python -m pip --disable-pip-version-check --no-input "$@"; }
[ -z "$base" ] || run "$base" -m venv .venv
$python -m pip --version >/dev/null 2>&1 || run $python -m ensurepip
pip install --progress-bar off --require-hashes -r $lock
pip install --no-deps --no-build-isolation -e .
run $python -c "$CHECK" $lock
run $python -c "import reverb"  # where a TensorFlow that does not fit shows
finish
