# Everything happens in .venv; the first target that needs it makes it.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Each process has clusters of its own, and takes whole files. Tests that start Spark keep the processors busy; the others
# wait more than they work. The folders in which some start Spark are collected in a fraction of the time of all.
TESTS := $(BIN)/pytest --dist loadfile --no-loadscope-reorder
WITH_SPARK := --numprocesses 2 -m 'spark and not long' tests/integration tests/e2e
WITHOUT := --numprocesses 6 -m 'not spark and not long'
# Tests start hundreds of processes: what one of them has compiled, the others need not.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo quick test test-long checks lint types imports read unit bench lock release image site man pictures clean

install: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Anabranch needs Python 3.11 or newer; found " + sys.version.split()[0] + "; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

demo: $(READY)
	@$(BIN)/anabranch demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

checks: $(READY)
	@$(MAKE) --no-print-directory --jobs 3 lint types imports

# Before each commit: some two minutes on two quiet processors. What takes above a third of a second is marked `slow`, and is in `make test`.
quick: checks
	$(TESTS) --numprocesses 2 -m 'not slow' tests/unit

# All tests are read once, beside the checks: six processes that compile them at the same time take minutes for it.
read: $(READY)
	@told=$$($(BIN)/pytest --collect-only --quiet 2>&1) || { echo "$$told"; exit 1; }

test: $(READY)
	@$(MAKE) --no-print-directory --jobs 4 lint types imports read
	@failed=0; \
	$(TESTS) $(WITH_SPARK) --durations=20 || failed=1; \
	$(TESTS) $(WITHOUT) --durations=20 || failed=1; \
	exit $$failed

test-long: $(READY)
	$(TESTS) --numprocesses 2

unit: $(READY)
	$(BIN)/pytest tests/unit

bench: $(READY)
	$(BIN)/python -m bench race

# After a change of dependencies: asks pip's index for the hashes of what constraints.txt pins.
lock: $(READY)
	$(BIN)/python -m release lock

release: $(READY)
	$(BIN)/python -m release build

# From what is committed, by podman; docs/deploy/image.md has other engines and bases.
image: $(READY)
	$(BIN)/python -m release image

# The documentation as a site, in build/site/site.
site: $(READY)
	$(BIN)/python -m release site

# After a change of commands or options.
man: $(READY)
	$(BIN)/python -m release man

# Terminals and page of the documentation, as tests see them.
pictures: $(READY)
	ANABRANCH_TEST_PICTURES=docs/pictures $(BIN)/pytest -m "" tests/e2e/test_tutorial.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .import_linter_cache
