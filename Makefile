# `make run` and `make test` do all the set-up on a fresh machine: Python 3.11+, make, a package index.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
export PIP_PROGRESS_BAR = off

.PHONY: run test test-all campaign check docs bench clean

run: .venv/.installed
	$(BIN)/dcdc fit digits --run runs/digits --overwrite --baseline k-means

test: .venv/.installed-dev # the docs' snippets run in `make check`
	$(BIN)/python -m pytest -n 2 --dist worksteal --ignore tests/test_docs.py

test-all: .venv/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not gpu"

campaign: .venv/.installed-dev
	$(BIN)/python tests/campaign/run.py --write docs/reliability.md

check: .venv/.installed-dev .venv/.installed-docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not gpu" tests/test_docs.py tests/test_notebook.py tests/test_site.py

docs: .venv/.installed-docs # site/index.html; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: .venv/.installed
	$(BIN)/python benchmarks/digits_seeds.py

clean:
	rm -rf .venv runs .pytest_cache .mypy_cache .ruff_cache build dist site

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "dcdc needs Python 3.11 or later: make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	@touch $@

.venv/.installed-dev: .venv/.installed
	$(PIP) install -c constraints.txt -e '.[dev]'
	$(PIP) install -c constraints.txt --no-deps 'timm>=1.0.9' # its tests do without torchvision
	@touch $@

.venv/.installed-docs: .venv/.installed
	$(PIP) install -c constraints.txt -e '.[docs]'
	@touch $@
