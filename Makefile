# What people and CI run. `make` alone prints the list.
#
# On a fresh machine Python 3.11+, make and (for the tests) Go and apt are enough: every target below
# sets up what it needs under .cache and .venv, and nothing is done again while its inputs are the
# same.

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
export PROM_LABEL_PROXY ?= $(CURDIR)/.cache/bin/prom-label-proxy
export PROMTOOL ?= $(CURDIR)/.cache/bin/promtool
export HELM ?= $(CURDIR)/.cache/bin/helm
export KUBECTL ?= $(CURDIR)/.cache/bin/kubectl
export ACTIONLINT ?= $(CURDIR)/.cache/bin/actionlint
GO_TOOLS := $(filter $(CURDIR)/.cache/bin/%,$(PROMETHEUS) $(GRPCURL) $(GHZ) $(PROM_LABEL_PROXY) \
	$(PROMTOOL) $(HELM) $(KUBECTL) $(ACTIONLINT))

# Other servers that samples can be in, from the packages of Debian and its kin. Without apt, name
# programs of your own, or leave these servers out: make test SERVERS=prometheus
export PROMETHEUS_2 ?= $(CURDIR)/.cache/servers/prometheus-2
export VICTORIA_METRICS ?= $(CURDIR)/.cache/servers/victoria-metrics
export INFLUXD ?= $(CURDIR)/.cache/servers/influxd
export SERVERS ?= prometheus prometheus-2 victoria-metrics influxdb
chosen = $(if $(filter $1,$(SERVERS)),$2)
PACKAGED := $(filter $(CURDIR)/.cache/servers/%,$(call chosen,prometheus-2,$(PROMETHEUS_2)) \
	$(call chosen,victoria-metrics,$(VICTORIA_METRICS)) $(call chosen,influxdb,$(INFLUXD)))

# The programs of `make e2e`. As in tests/e2e/programs.py, one that the environment names
# (KUBE_APISERVER=...) or that lies in KUBEBUILDER_ASSETS is not built.
KUBERNETES := kube-apiserver kube-controller-manager kube-scheduler
KEDA := keda-operator keda-adapter keda-webhooks
OLD_KEDA := $(addprefix .cache/e2e/keda-2.16/,keda-operator keda-adapter keda-crds.yaml)
ready = $(strip $($(shell echo $1 | tr a-z- A-Z_)) $(wildcard $(KUBEBUILDER_ASSETS:%=%/$1)))
E2E_TOOLS := $(foreach program,etcd $(KUBERNETES) $(KEDA) kwok alertmanager, \
	$(if $(call ready,$(program)),,.cache/e2e/$(program))) .cache/e2e/keda-crds.yaml $(OLD_KEDA)
# What the chart's objects for other operators are checked against.
FOREIGN_CRDS := $(addprefix .cache/e2e/,cert-manager-crds.yaml prometheus-operator-crds.yaml)
E2E_TOOLS += $(FOREIGN_CRDS)

# One resolution for every platform and every Python from the oldest supported one; and what of it an
# installation needs that only runs.
RESOLVE := pip compile pyproject.toml --all-extras --quiet --no-header --no-annotate --no-emit-index-url
COMPILE := $(RESOLVE) --universal --python-version 3.11 --group dev
COMPILE_RUNTIME := $(RESOLVE) --universal --python-version 3.11 --constraints requirements.lock
PYTHONS := 3.11 3.12 3.13 3.14
MACHINES := x86_64 aarch64
comma := ,

# The one place that says the version; what else has to name it is written from here.
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' keda_gpu_scaler/__init__.py)
STATE_VERSION = sed -e 's/^\(version: "\{0,1\}\)[^"]*/\1$(VERSION)/' \
	-e 's/^\(appVersion: "\{0,1\}\)[^"]*/\1$(VERSION)/' \
	-e 's/\(app\.kubernetes\.io\/version: "\{0,1\}\)[^"]*/\1$(VERSION)/' \
	-e 's/\(helm\.sh\/chart: keda-gpu-scaler-\)[^"]*/\1$(VERSION)/' \
	-e 's/\(image: "\{0,1\}keda-gpu-scaler:\)[^"]*/\1$(VERSION)/' \
	-e 's/\( keda-gpu-scaler:\)[0-9]*\.[0-9]*\.[0-9]*/\1$(VERSION)/'
VERSIONED = $(wildcard deploy/helm/keda-gpu-scaler/Chart.yaml deploy/kustomize/*.yaml deploy/kustomize/*/*.yaml \
	examples/quickstart/simulator.yaml docs/quickstart.md docs/quickstart.*.md)
PROTOC := -m grpc_tools.protoc -I $(PB)=proto proto/externalscaler.proto

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV) ## Watch 0 to N and back to 0 on this machine: no cluster, no GPU, no Go
	@$(BIN)/keda-gpu-scaler demo $(ARGS)

.PHONY: test
test: $(VENV) $(GO_TOOLS) $(PACKAGED) ## Run all tests with branch coverage, or some without (ARGS='tests/test_x.py')
	@$(BIN)/pytest $(or $(ARGS),-n auto --cov --cov-report=term)

.PHONY: e2e
e2e: $(VENV) $(filter %/prometheus %/helm %/kubectl %/grpcurl,$(GO_TOOLS)) $(E2E_TOOLS) ## Run the scenarios on the real KEDA and Kubernetes, or some (ARGS='tests/e2e/test_x.py')
	@$(BIN)/pytest $(or $(ARGS),-n 5 --dist loadgroup tests/e2e)

.PHONY: check
check: check-style check-types check-imports check-proto check-lock check-version check-docs ## Lint, format, types, import rules, generated code, locks, version, documentation

.PHONY: docs
docs: $(VENV) ## Build the documentation's site into build/site, or serve it (ARGS=serve)
	@# Not --quiet: it silences the warnings that --strict counts.
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(or $(ARGS),build --strict)

.PHONY: proto
proto: $(VENV) ## Regenerate the gRPC code from proto/externalscaler.proto
	@$(BIN)/python $(PROTOC) --python_out=. --pyi_out=. --grpc_python_out=.

.PHONY: chart
chart: $(VENV) $(filter %/helm %/kubectl,$(GO_TOOLS)) ## Regenerate what follows from the Helm chart and the settings
	@$(BIN)/python -m tests.chart.regenerate

# $(call LOCKED,file,how it is resolved,what is in it)
define LOCKED
@$(UV) $2 --generate-hashes -o .cache/$1 >/dev/null
@{ echo "# $(strip $3)"; echo "# Made by \`make lock\` from pyproject.toml; do not edit."; \
   sed '/^#/d' .cache/$1; } > $1
endef

.PHONY: lock
lock: $(UV) ## Regenerate both locks from pyproject.toml (ARGS=--upgrade for newer versions)
	@mkdir -p .cache
	@cp requirements.lock .cache/requirements.lock 2>/dev/null || true
	@# A week of age: most poisoned releases are found and withdrawn sooner.
	$(call LOCKED,requirements.lock,$(COMPILE) --exclude-newer '7 days' $(ARGS),\
		Every dependency and development tool$(comma) pinned with its hashes.)
	$(call LOCKED,requirements-runtime.lock,$(COMPILE_RUNTIME),\
		What runs the scaler and its extras$(comma) out of requirements.lock: what an image installs.)

.PHONY: version
version: ## Write the version of keda_gpu_scaler/__init__.py into the chart and the manifests
	@mkdir -p .cache
	@for file in $(VERSIONED); do $(STATE_VERSION) $$file > .cache/versioned; cp .cache/versioned $$file; done

# A tag may be any text: make does not expand what is in it, and the shell takes it for one word.
override TAG := $(value TAG)
export TAG
.PHONY: release-notes
release-notes: # Print what CHANGELOG.md says of this version, if TAG is its tag
	@[ "$$TAG" = "v$(VERSION)" ] \
		|| { printf "the tag is '%s', and %s says v%s\n" "$$TAG" keda_gpu_scaler/__init__.py "$(VERSION)" >&2; exit 1; }
	@awk '/^## / { found = index($$0, "## [$(VERSION)]") == 1; next } found' CHANGELOG.md | grep . \
		|| { echo "CHANGELOG.md has no section [$(VERSION)]" >&2; exit 1; }

DIST ?= dist
.PHONY: wheel
wheel: $(VENV) ## Build the wheel and the source archive into dist, from what is locked
	@rm -f $(DIST)/*.whl $(DIST)/*.tar.gz
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
		$(BIN)/python -m hatchling build -d $(DIST) >/dev/null

CHART := deploy/helm/keda-gpu-scaler
.PHONY: chart-archive
chart-archive: $(filter %/helm,$(GO_TOOLS)) ## Check the chart and pack it into dist (IMAGE=registry/keda-gpu-scaler names the image it installs)
	@$(HELM) lint --strict --quiet $(CHART)
	@rm -rf $(DIST)/chart && mkdir -p $(DIST)/chart && cp -R $(CHART) $(DIST)/chart/
	@if [ -n "$(IMAGE)" ]; then sed 's|^\(  repository: \)keda-gpu-scaler$$|\1$(IMAGE)|' $(CHART)/values.yaml \
		> $(DIST)/$(CHART:deploy/helm/%=chart/%)/values.yaml; fi
	@$(HELM) package --destination $(DIST) $(DIST)/chart/keda-gpu-scaler >/dev/null
	@rm -rf $(DIST)/chart

DOCKER ?= docker
.PHONY: image
image: ## Build the image keda-gpu-scaler for this machine, where there is a container engine (DOCKER=podman)
	@$(DOCKER) build --file deploy/Dockerfile --tag keda-gpu-scaler:$(VERSION) --build-arg VERSION=$(VERSION) \
		--build-arg REVISION=$$(git rev-parse HEAD) --build-arg CREATED=$$(git log -1 --format=%cI) .

.PHONY: tools
tools: $(GO_TOOLS) $(PACKAGED) ## Build or unpack what tests talk to into .cache (minutes, once)

.PHONY: e2e-tools
e2e-tools: $(E2E_TOOLS) ## Build Kubernetes, KEDA and the rest of `make e2e` into .cache/e2e (minutes, once)

.PHONY: bench
bench: $(VENV) $(GO_TOOLS) ## Run the benchmarks and print their numbers
	@$(BIN)/python -m benchmarks $(ARGS)

.PHONY: bench-wake
bench-wake: $(VENV) $(filter %/prometheus,$(GO_TOOLS)) $(E2E_TOOLS) ## Measure how long KEDA's own trigger and ours take to wake a workload
	@$(BIN)/python -m benchmarks.wake $(ARGS)

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

.PHONY: check-docs
check-docs: docs

.PHONY: check-proto
check-proto: $(VENV)
	@rm -rf .cache/proto && mkdir -p .cache/proto
	@$(BIN)/python $(PROTOC) --python_out=.cache/proto --pyi_out=.cache/proto --grpc_python_out=.cache/proto
	@diff -r -x __init__.py -x __pycache__ .cache/proto/$(PB) $(PB) \
		|| { echo "$(PB) is not what proto/externalscaler.proto generates: run make proto" >&2; exit 1; }

# $(call STILL_LOCKED,file,how it is resolved,what it follows from). Versions only: new hashes appear
# whenever a project uploads one more wheel of the same version.
define STILL_LOCKED
@sed -e '/^[ #]/d' -e 's/ *\\$$//' $1 > .cache/locked
@cp .cache/locked .cache/resolved
@$(UV) $2 -o .cache/resolved >/dev/null
@diff .cache/locked .cache/resolved || { echo "$1 does not fit $3: run make lock" >&2; exit 1; }
endef

.PHONY: check-lock
check-lock: $(UV)
	@mkdir -p .cache
	$(call STILL_LOCKED,requirements.lock,$(COMPILE),pyproject.toml)
	$(call STILL_LOCKED,requirements-runtime.lock,$(COMPILE_RUNTIME),requirements.lock)

.PHONY: check-version
check-version:
	@for file in $(VERSIONED); do $(STATE_VERSION) $$file | diff $$file - \
		|| { echo "$$file names another version than $(VERSION): run make version" >&2; exit 1; }; done

# That nothing has to be compiled, on any Python and machine that the image or a user may have.
.PHONY: check-wheels
check-wheels: $(UV)
	@mkdir -p .cache
	@for python in $(PYTHONS); do for machine in $(MACHINES); do \
		$(UV) $(RESOLVE) --constraints requirements.lock --only-binary :all: --python-version $$python \
			--python-platform $$machine-manylinux_2_28 -o .cache/wheels.txt >/dev/null; \
		echo "Python $$python on $$machine: $$(grep -c == .cache/wheels.txt) wheels"; done; done

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

# What each program is built from; its version is the one that its folder's go.mod requires.
%/grpcurl: MODULE := github.com/fullstorydev/grpcurl
%/ghz: MODULE := github.com/bojand/ghz
%/prometheus: MODULE := github.com/prometheus/prometheus
%/prom-label-proxy: MODULE := github.com/prometheus-community/prom-label-proxy
%/promtool: MODULE := github.com/prometheus/prometheus
%/actionlint: MODULE := github.com/rhysd/actionlint
%/helm: MODULE := helm.sh/helm/v4
%/kubectl: MODULE := k8s.io/kubernetes
%/alertmanager: MODULE := github.com/prometheus/alertmanager
%/etcd: MODULE := go.etcd.io/etcd/server/v3
%/kwok: MODULE := sigs.k8s.io/kwok
.cache/e2e/kube-%: MODULE := k8s.io/kubernetes
.cache/e2e/keda-%: MODULE := github.com/kedacore/keda/v2
%/cert-manager-crds.yaml: MODULE := github.com/cert-manager/cert-manager
%/prometheus-operator-crds.yaml: MODULE := github.com/prometheus-operator/prometheus-operator

PACKAGE = $(MODULE)/cmd/$(@F)
%/etcd %/prom-label-proxy: PACKAGE = $(MODULE)
.cache/e2e/keda-%: PACKAGE = $(MODULE)/cmd/$(@F:keda-%=%)

# A release build is told its version by the linker. The module of Prometheus 3.15.0 is v0.315.0.
MODULE_VERSION = $(patsubst v%,%,$(shell cd $(<D) && go list -m -f '{{.Version}}' $(MODULE) 2>/dev/null))
%/prometheus: GO_LINK = -X github.com/prometheus/common/version.Version=$(MODULE_VERSION:0.3%=3.%)
%/alertmanager: GO_LINK = -X github.com/prometheus/common/version.Version=$(MODULE_VERSION)
.cache/e2e/keda-%: GO_LINK = -X $(MODULE)/version.Version=$(MODULE_VERSION)
%/helm: GO_LINK = -X $(MODULE)/internal/version.version=v$(MODULE_VERSION)
%/kubectl .cache/e2e/kube-%: GO_LINK = $(addprefix -X k8s.io/component-base/version.,gitVersion=v$(MODULE_VERSION) \
	$(join gitMajor= gitMinor=,$(wordlist 1,2,$(subst ., ,$(MODULE_VERSION)))) gitCommit=unknown gitTreeState=archive)
# Service discovery and the web interface are most of Prometheus' size, and no test needs them.
%/prometheus %/promtool: GO_BUILD := -tags netgo,remove_all_sd

define GO_START
@command -v go >/dev/null \
	|| { echo "$(@F) is built with Go: install Go, or name a ready program in the environment" >&2; exit 1; }
@echo "Building $(@F) from $< (the first build takes minutes)"
@mkdir -p $(@D)
endef
GO_COMPILE = CGO_ENABLED=0 go build -mod=readonly -trimpath -buildvcs=false $(GO_BUILD) \
	-ldflags "-s -w $(GO_LINK)" -o $(abspath $@) $(PACKAGE)
GO_SOURCE = cd $(<D) && go mod download $(MODULE) && go list -m -f '{{.Dir}}' $(MODULE)

# As anybody: apt keeps its lists and what it fetches in a folder of ours, so nothing is installed and
# no root is needed. Where from, and the keys to check it against, are the machine's own settings.
PACKAGED_PROGRAM = $(@F:prometheus-2=prometheus)
PACKAGE_NAME = $(PACKAGED_PROGRAM:influxd=influxdb)
APT = apt-get -qq -o Dir::State=$@.apt -o Dir::State::status=/dev/null -o Dir::Cache=$@.apt \
	-o APT::Sandbox::User=

$(PACKAGED):
	@command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null \
		|| { echo "$(@F) comes from apt, which is not here: name a ready program in the environment," \
			"or leave other servers out: make test SERVERS=prometheus" >&2; exit 1; }
	@echo "Unpacking $(@F) from its package into .cache/servers"
	@rm -rf $@.apt && mkdir -p $@.apt/lists/partial $@.apt/archives/partial
	@$(APT) update && cd $@.apt && $(APT) download $(PACKAGE_NAME)
	@cd $@.apt && dpkg-deb -x $(PACKAGE_NAME)_*.deb . && cp usr/bin/$(PACKAGED_PROGRAM) $@
	@rm -rf $@.apt

module = $(addprefix tests/e2e/tools/$1/go.,mod sum)
# These do not go together with the libraries of the Prometheus in tools/go.mod.
ALONE := $(addprefix $(CURDIR)/.cache/bin/,prom-label-proxy helm actionlint)
$(ALONE): $(CURDIR)/.cache/bin/%: tools/%/go.mod tools/%/go.sum
$(filter-out $(ALONE) %/kubectl,$(GO_TOOLS)): tools/go.mod tools/go.sum
$(addprefix .cache/e2e/,etcd $(KUBERNETES) $(KEDA) keda-crds.yaml): $(call module,kube)
$(CURDIR)/.cache/bin/kubectl: $(call module,kube)
$(FOREIGN_CRDS): $(call module,crds)
$(OLD_KEDA): $(call module,keda-2.16)
.cache/e2e/kwok: $(call module,kwok)
.cache/e2e/alertmanager: $(call module,alertmanager)

$(GO_TOOLS) $(filter-out %.yaml %/alertmanager,$(E2E_TOOLS)):
	$(GO_START)
	@cd $(<D) && $(GO_COMPILE)
	@touch $@

CRDS := config/crd/bases
%/cert-manager-crds.yaml: CRDS := deploy/crds
%/prometheus-operator-crds.yaml: CRDS := example/prometheus-operator-crd
$(filter %.yaml,$(E2E_TOOLS)):
	$(GO_START)
	@source=$$($(GO_SOURCE)); for file in "$$source"/$(CRDS)/*.yaml; do echo ---; cat "$$file"; done > $@

# The module lacks the web interface that the program embeds: a copy with an empty page is built,
# from the versions and checksums in the copy's own go.mod and go.sum.
$(filter %/alertmanager,$(E2E_TOOLS)):
	$(GO_START)
	@rm -rf $@.source && source=$$($(GO_SOURCE)) && cp -R "$$source" $@.source && chmod -R u+w $@.source
	@mkdir $@.source/ui/app/dist && touch $@.source/ui/app/dist/index.html
	@cd $@.source && $(GO_COMPILE)
	@rm -rf $@.source && touch $@
