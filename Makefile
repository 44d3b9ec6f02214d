# What people and CI run. `make` alone prints the list.
#
# On a fresh machine Python 3.11+, make and (for the tests) Go are enough: every target below sets
# up what it needs under .cache and .venv, and nothing is done again while its inputs are the same.

SHELL := /bin/sh
.SHELLFLAGS := -ec
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
UV := .cache/uv/bin/uv
VENV := .venv/.installed
BIN := .venv/bin
PB := keda_gpu_scaler/pb

# Never fetch a Python: the one that runs `make` is the one people asked for.
export UV_PYTHON_DOWNLOADS := never
# Whoever has told pip about a mirror means uv as well.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif

# The Go programs that tests and benchmarks talk to; name your own in the environment to skip a build.
export PROMETHEUS ?= $(CURDIR)/.cache/bin/prometheus
export GRPCURL ?= $(CURDIR)/.cache/bin/grpcurl
export GHZ ?= $(CURDIR)/.cache/bin/ghz
GO_TOOLS := $(filter $(CURDIR)/.cache/bin/%,$(PROMETHEUS) $(GRPCURL) $(GHZ))

# One resolution for every platform and every Python from the oldest supported one.
COMPILE := pip compile pyproject.toml --group dev --universal --python-version 3.11 \
	--quiet --no-header --no-annotate --no-emit-index-url
PROTOC := -m grpc_tools.protoc -I $(PB)=proto proto/externalscaler.proto

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV) ## Watch 0 to N and back to 0 on this machine: no cluster, no GPU, no Go
	@$(BIN)/keda-gpu-scaler demo $(ARGS)

.PHONY: test
test: $(VENV) $(GO_TOOLS) ## Run all tests with branch coverage, or some without (ARGS='tests/test_x.py')
	@$(BIN)/pytest $(or $(ARGS),--cov --cov-report=term)

.PHONY: check
check: check-style check-types check-imports check-proto check-lock ## Lint, format, types, import rules, generated code, lock

.PHONY: proto
proto: $(VENV) ## Regenerate the gRPC code from proto/externalscaler.proto
	@$(BIN)/python $(PROTOC) --python_out=. --pyi_out=. --grpc_python_out=.

.PHONY: lock
lock: $(UV) ## Regenerate requirements.lock from pyproject.toml (ARGS=--upgrade for newer versions)
	@mkdir -p .cache
	@cp requirements.lock .cache/requirements.lock 2>/dev/null || true
	@# A week of age: most poisoned releases are found and withdrawn sooner.
	@$(UV) $(COMPILE) --generate-hashes --exclude-newer '7 days' $(ARGS) -o .cache/requirements.lock >/dev/null
	@{ echo "# Every dependency and development tool, pinned with its hashes."; \
	   echo "# Made by \`make lock\` from pyproject.toml; do not edit."; \
	   sed '/^#/d' .cache/requirements.lock; } > requirements.lock

.PHONY: tools
tools: $(GO_TOOLS) ## Build prometheus, grpcurl and ghz into .cache/bin (minutes, once)

.PHONY: bench
bench: $(VENV) $(GO_TOOLS) ## Run the benchmarks and print their numbers
	@$(BIN)/python -m benchmarks $(ARGS)

.PHONY: clean
clean: ## Remove everything that make made
	@rm -rf .cache .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@rm -rf build dist .coverage .coverage.* coverage.xml

.PHONY: check-style
check-style: $(VENV)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --diff --quiet; exit 1; }

.PHONY: check-types
check-types: $(VENV)
	@$(BIN)/mypy

.PHONY: check-imports
check-imports: $(VENV)
	@$(BIN)/lint-imports --no-logo

.PHONY: check-proto
check-proto: $(VENV)
	@rm -rf .cache/proto && mkdir -p .cache/proto
	@$(BIN)/python $(PROTOC) --python_out=.cache/proto --pyi_out=.cache/proto --grpc_python_out=.cache/proto
	@diff -r -x __init__.py -x __pycache__ .cache/proto/$(PB) $(PB) \
		|| { echo "$(PB) is not what proto/externalscaler.proto generates: run make proto" >&2; exit 1; }

# Versions only: new hashes appear whenever a project uploads one more wheel of the same version.
.PHONY: check-lock
check-lock: $(UV)
	@mkdir -p .cache
	@sed -e '/^[ #]/d' -e 's/ *\\$$//' requirements.lock > .cache/locked
	@cp .cache/locked .cache/resolved
	@$(UV) $(COMPILE) -o .cache/resolved >/dev/null
	@diff .cache/locked .cache/resolved \
		|| { echo "requirements.lock does not fit pyproject.toml: run make lock" >&2; exit 1; }

$(UV): tools/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is older than 3.11: name a newer one, as in make PYTHON=python3.12" >&2; exit 1; }
	@echo "Setting up uv in .cache/uv"
	@$(PYTHON) -m venv .cache/uv
	@.cache/uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tools/uv.txt
	@touch $@

$(VENV): requirements.lock pyproject.toml | $(UV)
	@echo "Installing the locked dependencies into .venv"
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv
	@$(UV) pip sync --quiet --python .venv --require-hashes requirements.lock
	@$(UV) pip install --quiet --python .venv --no-deps --no-build-isolation --editable .
	@touch $@

%/grpcurl: PACKAGE := github.com/fullstorydev/grpcurl/cmd/grpcurl
%/ghz: PACKAGE := github.com/bojand/ghz/cmd/ghz
%/prometheus: PACKAGE := github.com/prometheus/prometheus/cmd/prometheus
# Service discovery and the web interface are most of Prometheus' size, and no test needs them.
%/prometheus: GO_BUILD := -tags netgo,remove_all_sd
%/prometheus: GO_LINK := -X github.com/prometheus/common/version.Version=3.15.0

$(GO_TOOLS): tools/go.mod tools/go.sum
	@command -v go >/dev/null \
		|| { echo "$(@F) is built with Go: install Go, or name a ready program in the environment" >&2; exit 1; }
	@echo "Building $(@F) from tools/go.mod (the first build takes minutes)"
	@mkdir -p $(@D)
	@cd tools && CGO_ENABLED=0 go build -mod=readonly -trimpath $(GO_BUILD) -ldflags "-s -w $(GO_LINK)" -o $@ $(PACKAGE)
	@touch $@
