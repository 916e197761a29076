# Everything runs in .venv, built once from the pins in constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: reproduce test test-slow mutants lint format bench venv clean clean-cache

reproduce: venv
	$(BIN)/phasegrad reproduce

test: venv chromium
	$(BIN)/python -m pytest -n auto -m "not slow"

# The page is tested in a browser. As root on Debian one is installed by apt-get, in so many words; CHROMIUM=no leaves it out.
CHROMIUM ?= yes
.PHONY: chromium
chromium:
	@if command -v chromium >/dev/null; then :; \
	elif test "$(CHROMIUM)" = yes && test "$$(id -u)" = 0 && grep -qs '^ID=debian' /etc/os-release && command -v apt-get >/dev/null; then \
	echo "Installing Chromium with apt-get, as root, to test the page in a browser (make test CHROMIUM=no leaves it out)."; \
	apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium || echo "That failed: the page is not tested in a browser."; \
	else echo "There is no Chromium here: the page is not tested in a browser."; fi

test-slow: venv
	$(BIN)/python -m pytest -n auto -m slow

# Wrong changes that a test must notice; see tests/mutants. More words go in MUTANTS, such as MUTANTS="--count 40 --workers 8".
mutants: venv
	cd tests && ../$(BIN)/python -m mutants $(MUTANTS)

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
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
