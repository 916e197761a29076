# Everything runs in .venv, built once from the pins in requirements.lock and requirements-torch.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: reproduce test test-rest test-slow test-gpu test-oldest mutants lint format docs bench venv lock clean clean-cache

reproduce: venv
	$(BIN)/phasegrad reproduce

# Tests of one class or module share what they look at, and so run in one process.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadscope
APART := docs or browser or process or paper

test: venv system
	$(PYTEST) -m "not slow and not gpu and not ($(APART))"

# The rest: pages and their examples, the browser, processes and signals, the replication of the paper.
test-rest: venv system
	$(PYTEST) -m "not slow and not gpu and ($(APART))"

# Two programs from the system's package manager: a browser to test the page in, and ngspice to test circuits with.
# SYSTEM=no does without what is missing, and without those tests.
SYSTEM ?= yes
MISSING = for program in chromium ngspice; do command -v $$program >/dev/null || printf ' %s' $$program; done
.PHONY: system
system:
	@missing=$$($(MISSING)); \
	if test -z "$$missing"; then exit 0; fi; \
	if test "$(SYSTEM)" = yes && test "$$(id -u)" = 0 && grep -qs '^ID=debian' /etc/os-release && command -v apt-get >/dev/null; then \
	echo "About to install$$missing with apt-get, as root: the page is tested in the browser chromium, circuits in ngspice. 'make test SYSTEM=no' installs nothing and leaves those tests out."; \
	apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing || echo "That failed: what needs$$missing is not tested."; \
	else echo "Not here:$$missing. What needs it is not tested (chromium: the page; ngspice: circuits)."; fi

test-slow: venv
	$(PYTEST) -m slow

# Where PyTorch finds a CUDA device; elsewhere all of them are skipped.
test-gpu: venv
	$(BIN)/python -m pytest -m gpu tests/training/test_gpu.py

# Wrong changes that a test must notice; see tests/support/mutants. More words go in MUTANTS, such as MUTANTS="--count 40 --workers 8".
mutants: venv
	cd tests/support && ../../$(BIN)/python -m mutants $(MUTANTS)

lint: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: venv
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The site, in site/: a broken link, or a public name without a page, stops it. Needs no network; open site/index.html.
docs: venv
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: venv
	$(BIN)/phasegrad bench

venv: $(READY)

# Built in isolation, the package would fetch a build backend that no pin holds: the lock has it.
$(READY): pyproject.toml requirements.lock requirements-torch.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "phasegrad needs Python 3.11 or newer; run make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) -r requirements-torch.txt
	$(PIP) --no-deps --no-build-isolation -e .
	touch $(READY)

# Versions for every platform and every Python from 3.11.5 on, which the documentation tools need. Versions in the lock
# are kept; LOCK=--upgrade takes the newest, LOCK="--upgrade-package scipy" one of them. The lock leaves torch out.
LOCK ?=
lock: venv
	mkdir -p build
	echo 'torch; python_version < "3"' > build/no-torch.txt
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile pyproject.toml --quiet --all-extras --group dev --group torch-needs \
	--universal --python-version 3.11.5 --fork-strategy fewest --generate-hashes --no-annotate --override build/no-torch.txt \
	$(LOCK) --output-file requirements.lock

# The oldest versions that pyproject.toml allows, without any extra, in an environment of their own.
OLDEST := build/oldest
test-oldest: venv
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(BIN)/python -m pip --python $(OLDEST)/bin/python install --quiet -r constraints-oldest.txt --group test
	$(BIN)/python -m pip --python $(OLDEST)/bin/python install --quiet --no-deps --no-build-isolation -e .
	$(OLDEST)/bin/python -m pytest -n auto -m "not slow and not gpu"

clean-cache:
	find src -name '*.nb[ic]' -delete

clean: clean-cache
	rm -rf $(VENV) build site .pytest_cache .mypy_cache .ruff_cache .hypothesis
