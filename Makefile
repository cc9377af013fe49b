# `make help` lists the targets. The environment is .venv; nothing needs to be activated.

CONFIG = configs/sac_minitaur.yaml
ARGS =
# A CPython 3.11; when empty, the first of python3.11, python3 and python that is one.
PYTHON ?=

BIN = .venv/bin
# make hands its own command line down through the environment; a make below (in a test) must not inherit it.
ENTER = unset ARGS CONFIG MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS; exec

.DEFAULT_GOAL := help
.PHONY: help setup train test lint types lock clean venv

help:
	@echo "make setup                                            make .venv, with what requirements.lock names"
	@echo "make train [CONFIG=configs/NAME.yaml] [ARGS='...']    train in local mode (default: $(CONFIG))"
	@echo "make test  [ARGS='...']                               run the tests (ARGS: for pytest)"
	@echo "make lint                                             ruff: rules and formatting"
	@echo "make types                                            mypy"
	@echo "make lock  [ARGS=--upgrade]                           write requirements.lock from pyproject.toml"
	@echo "make clean                                            remove caches and builds; keep .venv and runs/"

setup: venv
	@echo ".venv is ready: .venv/bin/actorlearner --help"

# exec: the trainer takes the place of the recipe's shell. Ctrl-C then reaches it once, and make waits until it has
# saved and closed; a SIGTERM sent to make is passed on. make reports the trainer's exit code as "Error N".
train: venv
	@$(ENTER) $(BIN)/actorlearner local --config '$(CONFIG)' $(ARGS)

# Side by side: the tests of real processes wait more than they compute. tests/conftest.py has their order, and which of
# them stay together.
test: venv
	@$(ENTER) $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --no-loadscope-reorder $(ARGS)

lint: venv
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .

types: venv
	@$(BIN)/python -m mypy

# Keeps the versions that still fit; ARGS=--upgrade takes the newest. pip itself is what installs, so it is left out.
lock: venv
	@CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/python -m piptools compile --no-config --quiet --strip-extras \
		--extra dev --unsafe-package pip --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
		--output-file requirements.lock $(ARGS) pyproject.toml

clean:
	@rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . \( -path ./.venv -o -path ./.git -o -path ./runs \) -prune -o -type d -name __pycache__ -exec rm -rf {} +

venv: export PYTHON := $(PYTHON)
venv:
	@exec bash launch/setup.sh
