# `make demo` and `make test` do all of their set-up on a fresh machine; stamps make the second time instant.
#
#   TORCH_INDEX=https://download.pytorch.org/whl/cpu make test     take torch from another index (CPU-only wheels)
#   PYTHON=python3.12 make test                                    choose the interpreter (3.11 or later)
#   VENV=/somewhere make test                                      put the environment elsewhere

SHELL := /bin/bash
VENV ?= .venv
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
PYTHON ?=
DEMO ?= examples/speaker
DEMO_ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# uv resolves in seconds what pip resolves in minutes. It reads no pip.conf: where it reaches no index, pip does it all.
INSTALL = { $(PIP) install -c constraints.txt uv && \
	  VIRTUAL_ENV="$(abspath $(VENV))" $(BIN)/uv pip install --quiet --system-certs -c constraints.txt -e "$(WHAT)"; } || \
	  { echo "uv could not install the packages: pip does" >&2; $(PIP) install --no-compile -c constraints.txt -e "$(WHAT)"; }
STAMPS := $(VENV)/.hotlap
RUFF_PATHS := src tests $(wildcard bench) tools docs/conf.py
SITE ?= build/site
# Tests that look at how long things take: each on a core of its own, or alone on the machine; the others two at a time.
TIMED := $(addprefix tests/,trial lap/test_check.py lap/test_prove_seeds.py $(addprefix guard/test_,run.py look_around.py) \
	$(addprefix probe/test_,compute_facts.py detail.py host_lines.py stacks.py workers.py))
ALONE := $(addprefix tests/,diagnose/test_loader_script.py lap/test_speedup.py)
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

.PHONY: demo test unit lint format docs setup clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo    find, fix and prove on the example training ($(DEMO))"
	@echo "make test    tests, then lint (ruff, mypy, import rules)"
	@echo "make unit    tests alone      make lint    ruff, mypy, import rules      make format    ruff format"
	@echo "make docs    the documentation as a site, in $(SITE)"
	@echo "make clean   remove the environment and caches"

$(STAMPS)/venv:
	@python=""; for name in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
	  if "$$name" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python="$$name"; break; fi; \
	done; \
	if [ -z "$$python" ]; then echo "No Python 3.11 or later found: set PYTHON=/path/to/python3.11" >&2; exit 2; fi; \
	[ -x $(BIN)/python ] && $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || "$$python" -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

# Of torch's thousands of files only those that a training imports are compiled, here and not in the first measurement.
$(STAMPS)/torch: $(STAMPS)/venv constraints.txt
	$(PIP) install --no-compile $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) -c constraints.txt "$(TORCH)"
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -W ignore -c 'import torch._dynamo, torch.utils.data'
	@touch $@

$(STAMPS)/app: $(STAMPS)/torch pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e ".[examples,patch]"
	@touch $@

# The rest at once, and not compiled ahead: tests import a part of it, and Python compiles that as it goes.
$(STAMPS)/dev: WHAT := .[examples,dev]
$(STAMPS)/dev: $(STAMPS)/torch pyproject.toml constraints.txt
	$(INSTALL)
	@touch $(STAMPS)/app $@

$(STAMPS)/docs: WHAT := .[examples,dev,docs,browser]
$(STAMPS)/docs: $(STAMPS)/torch pyproject.toml constraints.txt
	$(INSTALL)
	@touch $(STAMPS)/app $(STAMPS)/dev $@

setup: $(STAMPS)/docs

demo: $(STAMPS)/app
	cd $(DEMO) && PATH="$(abspath $(BIN)):$$PATH" hotlap speedup $(DEMO_ARGS) -- python train.py

docs: $(STAMPS)/docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env docs $(SITE)
	@echo "$(SITE)/index.html"

# Hundreds of tests start Hotlap: compiling its source each time (where the environment asks for that) takes minutes.
# The timed ones measure, on whatever machine this is: one that a neighbour disturbed gets a second try, told as a rerun.
unit: $(STAMPS)/docs
	GOMP_SPINCOUNT=0 $(PYTEST) -n 2 --dist worksteal $(TIMED:%=--ignore=%) $(ALONE:%=--ignore=%) $(PYTEST_ARGS)
	$(PYTEST) -n logical --maxprocesses 2 --dist loadfile --own-core --reruns 1 $(TIMED) $(PYTEST_ARGS)
	$(PYTEST) --reruns 1 $(ALONE) $(PYTEST_ARGS)

# Lint has what the tests leave of the processor.
test: $(STAMPS)/docs
	@nice -n 19 $(MAKE) --no-print-directory lint > $(STAMPS)/lint.log 2>&1 & lint=$$!; trap 'kill $$lint' INT TERM; \
	$(MAKE) --no-print-directory unit; unit=$$?; wait $$lint; lint=$$?; cat $(STAMPS)/lint.log; exit $$((unit + lint))

lint: $(STAMPS)/dev
	$(BIN)/ruff check $(RUFF_PATHS)
	$(BIN)/ruff format --check $(RUFF_PATHS)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMPS)/dev
	$(BIN)/ruff check --fix $(RUFF_PATHS)
	$(BIN)/ruff format $(RUFF_PATHS)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
