# `make demo` and `make test` need nothing but a Python of 3.11 or later: each sets up an environment of its own.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo test test-jit test-lowest test-ray test-browser dist docs dev lint format generated conformance fuzz fuzz-plan fuzz-data fuzz-reader mutants bench models clean

# The first Python that will do, or the one given as PYTHON=...
FIND_PYTHON = for p in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python); do \
	if "$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
		command -v "$$p"; exit 0; fi; done; \
	echo "irload needs Python 3.11 or later with its venv module, and none was found." >&2; \
	echo "Install one (python.org; on Debian and Ubuntu: apt install python3 python3-venv) or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; \
	exit 1

# $(call environment,folder,extras): a virtual environment with irload installed editable.
define environment
	@python=$$($(FIND_PYTHON)) || exit 1; \
	echo "setting up $(1) with $$python"; \
	"$$python" -m venv $(1) && \
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check -e '.$(2)' && \
	touch $(1)/.ready
endef

help:  ## Show this.
	@sed -n 's/^\([a-z-]*\):.*##/\1 \t/p' Makefile | expand -t 14

SEVEN = models/digits/model.xml models/digits/digit_7_0.npy --top 3 --labels models/digits/labels.txt
demo: .venv-demo/.ready  ## Classify handwritten digits with the model in models/digits.
	@.venv-demo/bin/python models/digits_demo.py
	@echo; echo '$$ irrun $(SEVEN)'
	@.venv-demo/bin/irrun $(SEVEN)

test: .venv-test/.ready  ## Run the whole suite, in an environment of its own.
	@.venv-test/bin/python -m pytest -n auto --dist worksteal

test-jit: .venv-test/.ready  ## Run the suite with compiled kernels, which stand aside otherwise (TESTS=... for some of it).
	@IRLOAD_JIT=auto .venv-test/bin/python -m pytest -n auto --dist worksteal $(TESTS)

test-ray: .venv-ray/.ready  ## Run the tests of batches on Ray, in an environment of its own: Ray is large.
	@.venv-ray/bin/python -m pytest tests/ray

test-browser: .venv-browser/.ready  ## Look at a report in Chromium, which must be there with its driver; SCREENSHOTS=docs renews the pictures.
	@SCREENSHOTS="$(SCREENSHOTS)" .venv-browser/bin/python -m pytest tests/browser

test-lowest: .venv-lowest/.ready  ## Run the suite with the lowest versions of all dependencies that are allowed.
	@.venv-lowest/bin/python -m pytest -n auto --dist worksteal $(TESTS)

dist: .venv-dist/.ready  ## Build sdist and wheel into dist/, check them, and try the wheel in an empty folder.
	@rm -rf dist
	@.venv-dist/bin/python -m build --outdir dist . >/dev/null
	@.venv-dist/bin/python -m twine check --strict dist/*
	@.ci/wheel.sh dist/*.whl dist/*.tar.gz .venv-dist/bin/python

docs: .venv-docs/.ready  ## Build the documentation site into build/site; a warning is an error.
	@.venv-docs/bin/python docs/make_site.py
	@PATH="$(CURDIR)/.venv-docs/bin:$$PATH" NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict
	@.venv-docs/bin/python docs/make_site.py --check

dev: .venv/.ready  ## An environment with everything, installed editable, and the commit hooks.
	@if [ -d .git ]; then .venv/bin/pre-commit install; fi

lint: .venv-lint/.ready  ## ruff, pyright and the import contract.
	@failed=; for step in 'ruff check .' 'ruff format --check .' 'pyright --pythonpath .venv-lint/bin/python' \
		'pyright --pythonplatform Windows --pythonpath .venv-lint/bin/python' lint-imports; do \
		echo "$$step"; .venv-lint/bin/$$step || failed="$$failed $${step%% *}"; done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi

format: .venv-lint/.ready  ## Let ruff mend what it can.
	.venv-lint/bin/ruff check --fix .
	.venv-lint/bin/ruff format .

ONLY ?=
generated: .venv-test/.ready  ## Write anew all that is made from other files (ONLY="rules layers" for some of it).
	@.venv-test/bin/python -m tests.generated $(ONLY)

N ?= 100
SEED ?= 1
ROW ?=
conformance: .venv-test/.ready  ## Compare N random cases of every operation (or of ROW=Pad) with OpenVINO.
	.venv-test/bin/python -m tests.conformance $(N) $(SEED) $(ROW)

fuzz: N = 1000
fuzz: .venv-test/.ready  ## Play N mutants of the models (SEED=7), each in a process of its own, and report.
	.venv-test/bin/python -m tests.fuzz $(N) --seed $(SEED)

fuzz-plan: N = 1000
fuzz-plan: PRECISION = f32
fuzz-plan: .venv-test/.ready  ## Run N random programs (SEED=7) planned and plainly, compare, and shrink what differs.
	.venv-test/bin/python -m tests.fuzz.programs $(N) --seed $(SEED) --precision $(PRECISION)

fuzz-data: N = 1000
fuzz-data: .venv-test/.ready  ## Play N hostile data sets (SEED=7) with `irrun batch`, killed and resumed, and count.
	.venv-test/bin/python -m tests.fuzz.datasets $(N) --seed $(SEED)

SECONDS ?= 300
fuzz-reader: .venv-fuzz/.ready  ## Let atheris look for files that break the reader, for SECONDS.
	.venv-fuzz/bin/python -m tests.fuzz.reader_atheris -max_total_time=$(SECONDS)

DIR ?= models
models: .venv-test/.ready  ## Run every IR below DIR=... against OpenVINO and plain execution (OPTIONS=--json).
	@.venv-test/bin/python -m tests.agreement $(DIR) $(OPTIONS)

OF ?=
mutants: .venv-mutants/.ready  ## Change the code in N places, one at a time (OF=irload/plan), and list what no test notices.
	.venv-mutants/bin/python -m tests.mutants $(N) --seed $(SEED) $(if $(OF),--of $(OF))

MODELS ?=
ROUNDS ?= 15
bench: .venv-bench/.ready  ## Measure against OpenVINO and others, on MODELS=DIR as well; writes benchmarks/RESULTS.md.
	.venv-bench/bin/python -m benchmarks $(if $(MODELS),--models $(MODELS)) --rounds $(ROUNDS)

clean:  ## Remove the environments and caches.
	rm -rf .venv-demo .venv-test .venv-lowest .venv-dist .venv-docs .venv-ray .venv-browser .venv-fuzz .venv-mutants .venv-lint .pytest_cache .ruff_cache .hypothesis .mutants build dist

.venv/.ready: pyproject.toml
	$(call environment,.venv,[dev])

.venv-demo/.ready: pyproject.toml
	$(call environment,.venv-demo,)

.venv-test/.ready: pyproject.toml
	$(call environment,.venv-test,[test])

.venv-lowest/.ready: pyproject.toml .ci/lowest.py
	@python=$$($(FIND_PYTHON)) || exit 1; \
	echo "setting up .venv-lowest with $$python"; \
	"$$python" -m venv .venv-lowest && \
	.venv-lowest/bin/python .ci/lowest.py > .venv-lowest/constraints.txt && \
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-lowest/constraints.txt -e '.[test]' && \
	touch .venv-lowest/.ready

.venv-dist/.ready: pyproject.toml
	$(call environment,.venv-dist,[dist])

.venv-docs/.ready: pyproject.toml
	$(call environment,.venv-docs,[docs])

.venv-ray/.ready: pyproject.toml
	$(call environment,.venv-ray,[test-ray])

.venv-browser/.ready: pyproject.toml
	$(call environment,.venv-browser,[test-browser])

.venv-fuzz/.ready: pyproject.toml
	$(call environment,.venv-fuzz,[fuzz])

.venv-mutants/.ready: pyproject.toml
	$(call environment,.venv-mutants,[mutants])

.venv-bench/.ready: pyproject.toml
	$(call environment,.venv-bench,[bench])

.venv-lint/.ready: pyproject.toml
	$(call environment,.venv-lint,[lint])
