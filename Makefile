# Everything runs in .venv, built once from the pins in constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: reproduce test test-slow lint format bench venv clean clean-cache

reproduce: venv
	$(BIN)/phasegrad reproduce

test: venv chromium
	$(BIN)/python -m pytest -n auto -m "not slow"

# The page is tested in a browser, which is installed where that is possible.
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || \
	{ test "$$(id -u)" = 0 && grep -qs '^ID=debian' /etc/os-release && command -v apt-get >/dev/null && \
	apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } || \
	echo "Chromium could not be installed here; without it the page is not tested in a browser."

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
