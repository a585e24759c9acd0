# Every command makes its own virtual environment on first use; nothing else is needed but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
THREADS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-newer lint format bench lock clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14
	@echo
	@echo "PYTHON=python3.12 chooses the Python of a new environment, TORCH_INDEX=<address> (or default) where PyTorch is from."

demo: $(VENV)/.users  ## a model learns to read dates in 44 languages, and shows what it looks at
	$(BIN)/regard demo -o demo

test: $(VENV)/.developers lint  ## lint, types and the tests
	$(BIN)/python -m pytest -q -n $(THREADS) -m "not slow"

test-slow: $(VENV)/.developers $(VENV)/.pretrained  ## the tests that take minutes
	$(BIN)/python -m pytest -q -n $(THREADS) -m slow

test-newer:  ## make test on every Python that is installed and newer than PYTHON
	@$(PYTHON) tools/newer_pythons.py $(MAKE) test THREADS=$(THREADS)

lint: $(VENV)/.developers  ## ruff, mypy and clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror src/regard/native/*.[ch]

format: $(VENV)/.developers  ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i src/regard/native/*.[ch]

bench: $(VENV)/.bench  ## every speed and memory claim, beside its peers (about ten minutes)
	$(BIN)/python -m bench.startup
	$(BIN)/python -m bench.attention
	$(BIN)/python -m bench.memory
	$(BIN)/python -m bench.training tiny base

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "regard needs Python 3.11 or newer; set PYTHON=/path/to/it, as in: make demo PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# Exact versions, for users, developers, bench or pretrained.
$(VENV)/.%: pyproject.toml $(wildcard requirements/*.txt) | $(BIN)/python
	@$(BIN)/python tools/install.py $*
	@touch $@
$(VENV)/.pretrained: | $(VENV)/.developers

lock:  ## update the exact versions in requirements/ from the ranges in pyproject.toml
	$(PYTHON) tools/lock.py

clean:  ## remove the virtual environments and what was built
	rm -rf $(VENV) .venv-3.* dist build demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
