# `make train` and `make test` need make and Python 3.11 or newer, and nothing else.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
TABLES := $(BIN)/cog --verbosity=1 -I docs -P -p 'import tables_of_results, tables_of_solved, tables_of_speed'
PAGES := README.md docs/*.md

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help train test test-slow lint docs tables tutorials benchmark lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

train: $(INSTALLED)  ## train tic-tac-toe, going on from the last run if there is one
	$(BIN)/azjax train tictactoe --resume

test: $(INSTALLED)  ## lint, types, the site, the default tests and one of the notebooks
	$(MAKE) --jobs 2 --no-print-directory lint docs
	$(BIN)/pytest -n 2 --nbmake notebooks/tictactoe.ipynb tests

# With the types and shapes of all calls checked, those of the default tests too. Those in tests/slow run programs for
# minutes, which are compiled in full; see tests/conftest.py.
test-slow: $(INSTALLED)  ## the tests that take minutes, and all notebooks
	AZJAX_CHECK_TYPES=1 $(BIN)/pytest -m "slow or not slow" -n 2 --ignore tests/slow
	AZJAX_CHECK_TYPES=1 XLA_FLAGS= $(BIN)/pytest -m slow -n 2 tests/slow
	$(BIN)/pytest -n 2 --nbmake notebooks

lint: $(INSTALLED)  ## ruff and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: $(INSTALLED)  ## the site, into site/
	$(TABLES) --check --diff $(PAGES)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

tables: $(INSTALLED)  ## write the tables of experiments/results into the pages
	$(TABLES) -r $(PAGES)

tutorials: $(INSTALLED)  ## run the notebooks and keep what they show in docs/tutorials
	$(BIN)/jupyter nbconvert --log-level WARN --execute --to markdown --output-dir docs/tutorials notebooks/*.ipynb

benchmark: $(INSTALLED)  ## search throughput on this machine
	$(BIN)/azjax benchmark search

# A pin stays where it is while pyproject.toml allows it; remove requirements.lock first to renew them all.
lock:  ## solve requirements.lock anew from pyproject.toml (needs uv: pip install uv)
	uv pip compile --quiet pyproject.toml --extra plot --extra log --extra play --extra sweep --extra docs --extra notebook --extra dev --group build --output-file requirements.lock \
	  --universal --python-version 3.11 --no-python-downloads --generate-hashes --no-emit-index-url \
	  --custom-compile-command "make lock"

clean:  ## remove the environment and all caches; runs/ stays
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './runs/*' -prune -exec rm -rf {} +

# Hash checking refuses an editable install, so that azjax itself comes in a second call.
$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "azjax needs Python 3.11 or newer and '$(PYTHON)' is not; try: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-compile -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@
