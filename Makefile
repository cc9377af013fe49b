# `make help` lists the targets. The environment is .venv; nothing needs to be activated.

CONFIG = configs/ppo_minitaur.yaml
ARGS =
# A CPython 3.11; when empty, the first of python3.11, python3 and python that is one.
PYTHON ?=

BIN = .venv/bin
# make hands its own command line down through the environment; a make below (in a test) must not inherit it.
ENTER = unset ARGS CONFIG MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS; exec

.DEFAULT_GOAL := help
.PHONY: help setup train test test-long test-containers test-ray test-slurm test-learning lint types docs lock clean venv user-venv

help:
	@echo "make setup                                            make .venv, with the developers' tools too"
	@echo "make train [CONFIG=configs/NAME.yaml] [ARGS='...']    train in local mode (default: $(CONFIG))"
	@echo "make test  [ARGS='...']                               run the tests (ARGS: for pytest)"
	@echo "make test-long                                        run the long tests: real processes, minutes each"
	@echo "make test-containers                                  run the tests that need a container engine"
	@echo "make test-ray                                         run the tests that start a Ray cluster"
	@echo "make test-slurm                                       run the tests that need a Slurm"
	@echo "make test-learning                                    train four shipped configurations, and check their returns"
	@echo "make lint                                             ruff: rules and formatting; import-linter: the order of folders"
	@echo "make types                                            mypy"
	@echo "make docs                                             build the documentation into build/site"
	@echo "make lock  [ARGS=--upgrade]                           write both lock files from pyproject.toml"
	@echo "make clean                                            remove caches and builds; keep .venv and runs/"

setup: venv
	@echo ".venv is ready: .venv/bin/actorlearner --help"

# exec: the trainer takes the place of the recipe's shell. Ctrl-C then reaches it once, and make waits until it has
# saved and closed; a SIGTERM sent to make is passed on. make reports the trainer's exit code as "Error N".
train: user-venv
	@$(ENTER) $(BIN)/actorlearner local --config '$(CONFIG)' $(ARGS)

# Side by side: the tests of real processes wait more than they compute. tests/conftest.py has their order, and which of
# them stay together.
SIDE_BY_SIDE = --numprocesses 4 --no-loadscope-reorder

test: venv
	@$(ENTER) $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m 'not (long or container or ray or slurm or learning)' $(ARGS)

# With examples that no run has had before; `make test` always has the same ones.
test-long: venv
	@$(ENTER) $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m 'long or examples' --hypothesis-seed $$(date +%s) $(ARGS)

test-containers: venv
	@$(ENTER) $(BIN)/python -m pytest -m container -rs $(ARGS) tests/integration

test-ray: venv build/ray-cluster/bin/ray
	@$(ENTER) $(BIN)/python -m pytest -m ray $(ARGS) tests/integration

# A cluster that takes jobs, in an environment of its own: the packages of ray[default] do not fit TensorFlow's.
build/ray-cluster/bin/ray: | venv
	@echo "making build/ray-cluster ..."
	@$(BIN)/python -m venv build/ray-cluster
	@build/ray-cluster/bin/pip install --quiet "ray[default]==$$($(BIN)/python -c 'import ray; print(ray.__version__)')"

test-slurm: venv
	@$(ENTER) $(BIN)/python -m pytest -m slurm -rs $(ARGS) tests/integration

# One after the other: each trains with all processors.
test-learning: venv
	@$(ENTER) $(BIN)/python -m pytest -m learning --capture no $(ARGS) tests/integration

lint: venv
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/lint-imports --no-cache

types: venv
	@$(BIN)/python -m mypy

docs: venv
	@export NO_MKDOCS_2_WARNING=1; $(ENTER) $(BIN)/python -m mkdocs build --strict $(ARGS)

# requirements.lock has the users' packages; requirements-dev.lock adds the developers' tools. Both include the
# build requirements of the editable install. `make lock` keeps all versions that still fit; ARGS=--upgrade
# takes the newest ones. pip is left out, because it installs the others.
COMPILE = CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/python -m piptools compile --no-config --quiet --strip-extras \
	--generate-hashes --build-deps-for editable --unsafe-package pip \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host

lock: venv
	@$(COMPILE) --output-file requirements.lock $(ARGS) pyproject.toml
	@$(COMPILE) --extra dev --constraint requirements.lock --output-file requirements-dev.lock $(ARGS) pyproject.toml
	@sed -i '/^$$/,$$d' requirements-dev.lock  # A warning at the end that pip is left out.

clean:
	@rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . \( -path ./.venv -o -path ./.git -o -path ./runs \) -prune -o -type d -name __pycache__ -exec rm -rf {} +

venv user-venv: export PYTHON := $(PYTHON)
venv:
	@exec bash launch/setup.sh requirements-dev.lock
user-venv:
	@exec bash launch/setup.sh
