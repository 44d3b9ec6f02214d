# What people and CI run. `make` alone prints the list.
#
# Python 3.11 or newer is enough for `make demo`, `make test` and `make check`. Whatever else a target
# needs it sets up by itself, under .cache and .venv, and only once.

SHELL := /bin/sh
.SHELLFLAGS := -ec
.DEFAULT_GOAL := help

# The versions of Python that tests have run on, which pyproject.toml and the workflows promise too.
PYTHONS := 3.11 3.12 3.13
IS_NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
# The first of these that is new enough. To run it is the only way to know: some are there and stop.
PYTHON ?= $(or $(shell for each in python3 $(PYTHONS:%=python%); do \
	$$each $(IS_NEW_ENOUGH) 2>/dev/null && echo $$each && break; done),python3)
UV := .cache/uv/bin/uv
VENV := .venv/.installed
TOOLS := .venv/.tools
BIN := .venv/bin
FUZZ := .cache/fuzz/.installed
PB := keda_gpu_scaler/pb
PROTOC := -m grpc_tools.protoc -I $(PB)=proto proto/externalscaler.proto
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' keda_gpu_scaler/__init__.py)

# Never fetch a Python: the one that runs `make` is the one people asked for.
export UV_PYTHON_DOWNLOADS := never
# Tests start hundreds of processes, and without byte code each of them compiles everything again.
unexport PYTHONDONTWRITEBYTECODE
# A mirror that pip has been told about is meant for uv as well.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif

# Tests also wait for processes and sockets, so two share a core; those with real servers wait more.
WORKERS = $(shell $(PYTHON) -c 'import os; print($(1) * os.cpu_count())')
PARALLEL = -n $(call WORKERS,2) --dist worksteal
PARALLEL_SERVERS = -n $(call WORKERS,3) --dist worksteal
SCENARIOS := -n 5 --dist loadgroup tests/e2e
# KEDA and Kubernetes, the newest that belong together first; the others run a part of the scenarios.
GENERATIONS := 2.21/1.36 2.20/1.35 2.16/1.35 2.21/1.37
# Where `make test COVER=1` demands all branches; pyproject.toml has the same for mutants.
CORE := */spec/*,*/trigger/*,*/query/*,*/demand/*,*/promql/*,*/snapshot/*,*/decision/*,*/record/causes.py,*/autoscaling/*,*/explain/gates.py

.PHONY: help
help: ## Print this list
	@awk -F ':.* ##+ ' '/^[a-z0-9-]+:.* ## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'For CI and releases:'
	@awk -F ':.* ##+ ' '/^[a-z0-9-]+:.* ### / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV) ## Watch it beside recipes of others on this machine: no cluster, no GPU, no Go
	@$(BIN)/keda-gpu-scaler demo $(ARGS)

.PHONY: test test-servers test-nightly e2e e2e-all cover mutants soak fuzz
test: $(VENV) ## Run the quick tests, which need only Python: a minute (ARGS=tests/spec/test_kinds.py for some)
	@$(BIN)/pytest $(or $(ARGS),$(PARALLEL)) $(if $(COVER),--cov --cov-report=)
	$(if $(COVER),@$(BIN)/coverage report)
	$(if $(COVER),@$(BIN)/coverage report --include='$(CORE)' --fail-under=100 --format=total)
test-servers: $(TOOLS) ## Run the tests that need time, or real servers and programs, built or unpacked first (ARGS=...)
	@$(BIN)/pytest --servers $(or $(ARGS),$(PARALLEL_SERVERS))
test-nightly: $(TOOLS) ### Run more seeds and variants of them, as every night does (ARGS=...)
	@$(BIN)/pytest --nightly $(or $(ARGS),$(PARALLEL_SERVERS))
e2e: $(TOOLS) ## Run the core of the scenarios on the real KEDA and Kubernetes, built first (ARGS=...)
	@$(BIN)/pytest --servers $(or $(ARGS),-m core $(SCENARIOS))
e2e-all: $(TOOLS) ### Run every scenario, and a part of them on other versions: before a release (ARGS=2.20/1.35)
	@failed=; for each in $(or $(ARGS),$(GENERATIONS)); do \
		case $$each in $(firstword $(GENERATIONS))) marked= ;; *) marked="-m generations" ;; esac; \
		KEDA=$${each%/*} KUBERNETES=$${each#*/} $(BIN)/pytest --servers $$marked $(SCENARIOS) \
			|| failed="$$failed $$each"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }
cover: ## Run the quick tests, print what they cover, and demand all branches of the core
	@$(MAKE) --no-print-directory test COVER=1
mutants: $(TOOLS) ### Change the core in one place at a time, and print what no test notices: hours (ARGS=... for some)
	@rm -rf mutants
	@$(BIN)/mutmut run $(ARGS)
	@$(BIN)/python tools/mutants.py

.PHONY: check check-style check-types check-imports check-proto check-lock check-version check-workflows check-wheels audit docs
check: check-style check-types check-imports check-proto check-lock check-version check-workflows docs ## Lint, format, types, import rules, generated code, locks, version, workflows, documentation
check-style: $(TOOLS)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --diff --quiet; exit 1; }
check-types: $(TOOLS)
	@$(BIN)/mypy
check-imports: $(TOOLS)
	@$(BIN)/lint-imports --no-logo
check-proto: $(TOOLS)
	@rm -rf .cache/proto && mkdir -p .cache/proto
	@$(BIN)/python $(PROTOC) --python_out=.cache/proto --pyi_out=.cache/proto --grpc_python_out=.cache/proto
	@diff -r -x __init__.py -x __pycache__ .cache/proto/$(PB) $(PB) \
		|| { echo "$(PB) is not what proto/externalscaler.proto generates: run make proto" >&2; exit 1; }
check-lock: $(UV)
	@tools/lock.sh --check
check-version:
	@tools/version.sh --check
# Without a look at the network: what is pinned there stays what it was.
check-workflows: $(TOOLS)
	@$(BIN)/zizmor --offline --no-progress --quiet --persona auditor .github action.yml
	@$(BIN)/hadolint deploy/Dockerfile .devcontainer/Dockerfile
# That nothing has to be compiled, on any Python and machine that the image or a user may have.
check-wheels: $(UV)
	@for python in $(PYTHONS); do for machine in x86_64 aarch64; do \
		$(UV) pip compile requirements-runtime.lock --quiet --only-binary :all: --python-version $$python \
			--python-platform $$machine-manylinux_2_28 -o .cache/wheels.txt; \
		echo "Python $$python on $$machine: $$(grep -c == .cache/wheels.txt) wheels"; done; done
# By what the package index says today, so it is no part of `make check`.
audit: $(TOOLS) ### Look for known vulnerabilities of what is locked for the image
	@$(BIN)/pip-audit --strict --progress-spinner off --require-hashes --disable-pip -r requirements-runtime.lock
docs: $(TOOLS) ## Build the documentation's site into build/site, or serve it (ARGS=serve)
	@# Not --quiet: it silences the warnings that --strict counts.
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(or $(ARGS),build --strict)

.PHONY: proto chart schema keda-schema lock version release-notes
proto: $(TOOLS) ### Regenerate the gRPC code from proto/externalscaler.proto
	@$(BIN)/python $(PROTOC) --python_out=. --pyi_out=. --grpc_python_out=.
chart: $(TOOLS) ## Regenerate what follows from the Helm chart and the settings
	@$(BIN)/python -m tools.generated chart-values chart
schema: $(TOOLS) ## Regenerate the JSON Schema of triggers from their keys, and the table of fixed times
	@$(BIN)/python -m tools.generated schema times
keda-schema: $(TOOLS) ### Regenerate what check knows of ScaledObjects from the locked KEDA and Kubernetes
	@$(BIN)/python -m tools.generated keda-schema
lock: $(UV) ## Regenerate the locks from pyproject.toml (ARGS=--upgrade for newer versions)
	@tools/lock.sh $(ARGS)
version: ### Write the version of keda_gpu_scaler/__init__.py into the chart and the manifests
	@tools/version.sh
# A tag may be any text: make does not expand what is in it, and the shell takes it for one word.
override TAG := $(value TAG)
export TAG
release-notes: ### Print what CHANGELOG.md says of this version, if TAG is its tag
	@tools/version.sh --notes "$$TAG"

.PHONY: wheel chart-archive image rootfs
DIST ?= dist
wheel: $(TOOLS) ### Build the wheel and the source archive into dist, from what is locked
	@rm -f $(DIST)/*.whl $(DIST)/*.tar.gz
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
		$(BIN)/python -m hatchling build -d $(DIST) >/dev/null
chart-archive: $(TOOLS) ### Check the chart and pack it into dist (IMAGE=registry/keda-gpu-scaler names its image)
	@HELM=$$($(BIN)/python -m testbed.programs helm) tools/chart.sh $(DIST) $(IMAGE)
DOCKER ?= docker
soak: $(TOOLS) ### Let two scalers live with servers that misbehave, and judge each answer: an hour (minutes=...)
	@$(BIN)/python -m tests.soak --minutes $(or $(minutes),60)
fuzz: $(FUZZ) ### Feed every reader of foreign bytes with inputs that reach new code (seconds=60, target=metadata)
	@.cache/fuzz/bin/python -m tests.fuzz --seconds $(or $(seconds),60) $(target)
image: ## Build the image keda-gpu-scaler for this machine, where there is a container engine (DOCKER=podman)
	@$(DOCKER) build --file deploy/Dockerfile --tag keda-gpu-scaler:$(VERSION) --build-arg VERSION=$(VERSION) \
		--build-arg REVISION=$$(git rev-parse HEAD) --build-arg CREATED=$$(git log -1 --format=%cI) .
	@echo keda-gpu-scaler:$(VERSION)

rootfs: $(TOOLS) ### Carry out deploy/Dockerfile on a Debian, without an engine: same files twice, start, size, SBOM
	@SYFT=$$($(BIN)/python -m testbed.programs syft) && $(BIN)/python tools/rootfs.py --syft "$$SYFT"

.PHONY: tools bench bench-full bench-figures bench-decisions bench-survey bench-wake expectations pictures bench-latency bench-deletion-cost clean
tools: $(TOOLS) ## Build or unpack every program that tests run, into .cache (an hour, once)
	@$(BIN)/python -m testbed.programs
bench: $(TOOLS) ## Run the benchmarks and print which goals are met: 15 minutes (ARGS='--only polling')
	@$(BIN)/python -m benchmarks $(ARGS)
bench-full: $(TOOLS) ### Run the benchmarks that take longer as well
	@$(BIN)/python -m benchmarks --full $(ARGS)
bench-figures: $(TOOLS) ### Run the benchmarks and write their figures into their page (ARGS=--full, ARGS='--run FILE')
	@$(BIN)/python -m benchmarks --commit $(ARGS)
bench-decisions: $(TOOLS) ## Score the decisions on public traces, next to recipes: 10 minutes (ARGS=--quick, ARGS=--commit)
	@$(BIN)/python -m benchmarks.decisions $(ARGS)
bench-survey: $(TOOLS) ### Survey a made-up week of 200 workloads, and compare the hours with a count of the samples
	@$(BIN)/python -m benchmarks.survey
expectations: $(TOOLS) ### Print what to expect of a climb, a rollout, an outage, next to recipes: 10 minutes
	@$(BIN)/python -m tests.stories.loops.expectations
pictures: $(TOOLS) ### Draw the pictures of README.md and docs anew
	@$(BIN)/python -m tools.pictures
bench-wake: $(TOOLS) ### Measure how long KEDA's own trigger and ours take to wake a workload
	@$(BIN)/python -m benchmarks.wake $(ARGS)
bench-deletion-cost: $(TOOLS) ### Count the requests that scale-ins cut, with deletion-cost and without: 12 minutes
	@$(BIN)/python -m benchmarks.scale_ins $(ARGS)
bench-latency: $(TOOLS) ### Follow a ramp by a demand, and in steps by the latency, on a model of an LLM server
	@$(BIN)/python -m benchmarks.latency
clean: ## Remove everything that make made
	@rm -rf .cache .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@rm -rf build dist mutants .coverage .coverage.* coverage.xml

$(UV): tools/uv.txt
	@$(PYTHON) $(IS_NEW_ENOUGH) || { echo "$(PYTHON) is no Python 3.11 or newer: name one, as in \
	make PYTHON=/opt/python/bin/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) comes without venv: \
	apt-get install $(notdir $(PYTHON))-venv" >&2; exit 1; }
	@echo "Setting up uv in .cache/uv"
	@$(PYTHON) -m venv .cache/uv
	@.cache/uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tools/uv.txt
	@touch $@
# Tools that are there stay there.
$(VENV): LOCK = $(if $(wildcard $(TOOLS)),requirements.lock,requirements-test.lock)
$(VENV): requirements-test.lock pyproject.toml | $(UV)
	@echo "Installing the locked dependencies into .venv"
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv
	@$(UV) pip sync --quiet --compile-bytecode --python .venv --require-hashes $(LOCK)
	@$(UV) pip install --quiet --python .venv --no-deps --no-build-isolation --editable .
	@touch $@
$(TOOLS): requirements.lock $(VENV)
	@echo "Installing the locked tools into .venv"
	@$(UV) pip install --quiet --compile-bytecode --python .venv --require-hashes -r requirements.lock
	@touch $@
$(FUZZ): requirements.lock tests/fuzz/requirements.lock | $(UV)
	@echo "Installing the fuzzer into .cache/fuzz"
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .cache/fuzz
	@$(UV) pip sync --quiet --python .cache/fuzz --require-hashes requirements.lock tests/fuzz/requirements.lock
	@touch $@
