# Everything runs in .venv, built once from the pins in constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: reproduce test test-slow lint format bench venv clean clean-cache

reproduce: venv
	$(BIN)/phasegrad reproduce

test: venv
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: venv
	$(BIN)/python -m pytest -n auto -m slow

lint: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: venv
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: venv
	$(BIN)/phasegrad bench

venv: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "phasegrad needs Python 3.11 or newer; run make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

clean-cache:
	find src -name '*.nb[ic]' -delete

clean: clean-cache
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
