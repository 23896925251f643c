# One environment, .venv, serves every target; `make demo` installs only the required dependencies of irload.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-jit test-lowest test-ray test-browser test-clients dist docs dev lint format generated conformance fuzz fuzz-plan fuzz-data fuzz-reader mutants bench models clean

# Tests start thousands of processes. Without cached bytecode each would compile all modules: 1.1 s instead of 0.4 s.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n $(or $(WORKERS),auto) --dist worksteal

# The first suitable Python, or PYTHON=...
FIND_PYTHON = for p in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python); do \
	if "$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
		command -v "$$p"; exit 0; fi; done; \
	echo "irload needs Python 3.11 or later with its venv module, and none was found." >&2; \
	echo "Install one (python.org; on Debian and Ubuntu: apt install python3 python3-venv) or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; \
	exit 1

# $(call install,folder,requirement,options of uv): an editable install by uv, which pip installs first if it is missing.
# If uv is unavailable (no build for this machine, unreachable index), pip installs everything; only lowest and dist require uv.
PIP = -m pip --quiet --disable-pip-version-check install
define install
	@python=$$($(FIND_PYTHON)) || exit 1; \
	if [ ! -x $(1)/bin/python ]; then echo "setting up $(1) with $$python"; "$$python" -m venv $(1) || exit 1; fi; \
	uv=$$(command -v uv || command -v $(BIN)/uv || { $(1)/bin/python $(PIP) 'uv>=0.5' 2>/dev/null && echo $(1)/bin/uv; }); \
	{ [ -n "$$uv" ] && "$$uv" pip install --quiet --python $(1)/bin/python $(3) -e '$(2)'; } || \
	{ [ -z '$(3)' ] && $(1)/bin/python $(PIP) --no-compile -e '$(2)'; } && touch $@
endef

help:  ## Show this.
	@sed -n 's/^\([a-z-]*\):.*##/\1 \t/p' Makefile | expand -t 14

SEVEN = models/digits/model.xml models/digits/digit_7_0.npy --top 3 --labels models/digits/labels.txt
demo: .venv/.base  ## Classify handwritten digits with the model in models/digits.
	@$(BIN)/python models/digits_demo.py
	@echo; echo '$$ irrun $(SEVEN)'
	@$(BIN)/irrun $(SEVEN)

test: .venv/.dev  ## Run the suite.
	@$(PYTEST) $(TESTS)

test-all: .venv/.dev  ## Run the suite with all seeds, comparing with the OpenVINO runtime instead of recorded results (nightly).
	@IRLOAD_TESTS=all $(PYTEST) $(TESTS)

test-jit: .venv/.dev  ## Run the suite with compiled kernels (TESTS=... for a part, WORKERS=... processes).
	@IRLOAD_JIT=auto $(PYTEST) $(TESTS)

test-ray: .venv/.dev  ## Run the tests of batches on Ray.
	@$(BIN)/python -m pytest tests/ray

test-browser: .venv/.dev  ## Check a report in Chromium, which must be installed with its driver; SCREENSHOTS=docs updates the screenshots.
	@SCREENSHOTS="$(SCREENSHOTS)" $(BIN)/python -m pytest tests/browser

CLIENTS ?=
test-clients: .venv/.dev  ## Run libraries that import OpenVINO on irload and on the runtime (CLIENTS="model_api …"; 12 GB).
	@$(BIN)/python -m tests.clients $(CLIENTS)

test-lowest: .venv-lowest/.ready  ## Run the suite with the lowest version of each dependency.
	@.venv-lowest/bin/python -m pytest -n $(or $(WORKERS),auto) --dist worksteal $(TESTS)

dist: .venv/.dev  ## Build sdist and wheel into dist/, check them, and test the wheel in an empty folder.
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	@$(BIN)/python -m twine check --strict dist/*
	@.ci/wheel.sh dist/*.whl dist/*.tar.gz $(BIN)/python

docs: .venv/.dev  ## Build the documentation site into build/site; a warning is an error.
	@$(BIN)/python docs/make_site.py
	@PATH="$(CURDIR)/$(BIN):$$PATH" NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@$(BIN)/python docs/make_site.py --check

dev: .venv/.dev  ## Create an environment with all extras, an editable install, and the commit hooks.
	@if [ -d .git ]; then $(BIN)/pre-commit install; fi

PYREFLY = pyrefly check --python-interpreter-path $(BIN)/python
lint: .venv/.dev  ## ruff, the import contract, and pyrefly for this system and for Windows, where os and others differ.
	@failed=; for step in 'ruff check .' 'ruff format --check .' lint-imports '$(PYREFLY)' '$(PYREFLY) --python-platform win32'; do \
		echo "$$step" | cut -c-100; $(BIN)/$$step || failed="$$failed $${step%% *}"; done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi

format: .venv/.dev  ## Apply ruff's automatic fixes.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

ONLY ?=
generated: .venv/.dev  ## Regenerate all generated files (ONLY="rules imports" for some of them).
	@$(BIN)/python -m tests.generated $(ONLY)

N ?= 100
SEED ?= 1
ROW ?=
conformance: .venv/.dev  ## Compare N random cases of every operation (or of ROW=Pad) with OpenVINO.
	$(BIN)/python -m tests.conformance $(N) $(SEED) $(ROW)

fuzz: N = 1000
fuzz: .venv/.dev  ## Run N mutants of the models (SEED=7), each in a separate process, and report.
	$(BIN)/python -m tests.fuzz $(N) --seed $(SEED)

fuzz-plan: N = 1000
fuzz-plan: PRECISION = f32
fuzz-plan: .venv/.dev  ## Run N random programs (SEED=7) planned and plainly, compare, and shrink failing ones.
	$(BIN)/python -m tests.fuzz.programs $(N) --seed $(SEED) --precision $(PRECISION)
	$(BIN)/python -m tests.fuzz.chains $$(( ($(N) + 9) / 10 )) --seed $(SEED)

fuzz-data: N = 1000
fuzz-data: .venv/.dev  ## Run N hostile data sets (SEED=7) with `irrun batch`, killed and resumed, and count the items.
	$(BIN)/python -m tests.fuzz.datasets $(N) --seed $(SEED)

SECONDS ?= 300
fuzz-reader: .venv/.fuzz  ## Search for files that crash the reader with atheris, for SECONDS.
	$(BIN)/python -m tests.fuzz.reader_atheris -max_total_time=$(SECONDS)

DIR ?= models
models: .venv/.dev  ## Run every IR below DIR=... against OpenVINO and plain execution (OPTIONS=--json).
	@$(BIN)/python -m tests.agreement $(DIR) $(OPTIONS)

OF ?=
mutants: .venv/.mutants  ## Create N single-change mutants of the code (OF=irload/plan) and list those that no test detects.
	$(BIN)/python -m tests.mutants $(N) --seed $(SEED) $(if $(OF),--of $(OF))

MODELS ?=
ROUNDS ?= 15
bench: .venv/.bench  ## Compare with OpenVINO and others, also on MODELS=DIR; writes benchmarks/RESULTS.md.
	$(BIN)/python -m benchmarks $(if $(MODELS),--models $(MODELS)) --rounds $(ROUNDS)

clean:  ## Remove the environments and caches.
	rm -rf .venv .venv-lowest .venv-clients .pytest_cache .ruff_cache .hypothesis .mutants build dist

.venv/.base: pyproject.toml
	$(call install,.venv,.)

# .venv/.dev stands for the extra dev, .venv/.bench for the extra bench …, all in one environment.
.venv/.%: pyproject.toml
	$(call install,.venv,.[$*])

.venv-lowest/.ready: pyproject.toml .venv/.dev
	$(call install,.venv-lowest,.[test],--resolution lowest-direct)
