# How the programs that are not Python are built or unpacked into .cache. `testbed/programs.py` calls it
# for those that nobody has named:
#
#     make --file testbed/programs.mk .cache/bin/prometheus
#
# Their versions stand in the go.mod files named here; a program is built again when its go.mod or
# go.sum is newer.

SHELL := /bin/sh
.SHELLFLAGS := -ec
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:

modules = $(addprefix $1/go.,mod sum)
SMALL := $(addprefix .cache/bin/,prometheus promtool grpcurl)
# These do not go together with the libraries of the Prometheus in tools/go.mod.
ALONE := $(addprefix .cache/bin/,prom-label-proxy helm actionlint syft)
KUBE := $(addprefix .cache/e2e/,etcd kube-apiserver kube-controller-manager kube-scheduler \
	keda-operator keda-adapter keda-webhooks) .cache/bin/kubectl
KUBE_BEFORE := $(addprefix .cache/e2e/kube-1.35/,kube-apiserver kube-controller-manager kube-scheduler) \
	$(addprefix .cache/e2e/keda-2.20/,keda-operator keda-adapter keda-webhooks)
KUBE_AFTER := $(addprefix .cache/e2e/kube-1.37/,kube-apiserver kube-controller-manager kube-scheduler)
OLD_KEDA := $(addprefix .cache/e2e/keda-2.16/,keda-operator keda-adapter)
GO_PROGRAMS := $(SMALL) $(ALONE) $(KUBE) $(KUBE_BEFORE) $(KUBE_AFTER) $(OLD_KEDA) .cache/e2e/kwok
CRDS := $(addprefix .cache/e2e/,keda-crds.yaml keda-2.20/keda-crds.yaml keda-2.16/keda-crds.yaml \
	cert-manager-crds.yaml prometheus-operator-crds.yaml)
BROWSER := $(addprefix .cache/servers/,chromium chromedriver)
PACKAGED := $(addprefix .cache/servers/,prometheus-2 victoria-metrics influxd)

$(SMALL): $(call modules,tools)
$(ALONE): .cache/bin/%: tools/%/go.mod tools/%/go.sum
$(KUBE) .cache/e2e/keda-crds.yaml: $(call modules,tests/e2e/tools/kube)
$(KUBE_BEFORE) .cache/e2e/keda-2.20/keda-crds.yaml: $(call modules,tests/e2e/tools/kube-1.35)
$(KUBE_AFTER): $(call modules,tests/e2e/tools/kube-1.37)
$(OLD_KEDA) .cache/e2e/keda-2.16/keda-crds.yaml: $(call modules,tests/e2e/tools/keda-2.16)
.cache/e2e/kwok: $(call modules,tests/e2e/tools/kwok)
.cache/e2e/alertmanager: $(call modules,tests/e2e/tools/alertmanager)
.cache/e2e/cert-manager-crds.yaml .cache/e2e/prometheus-operator-crds.yaml: $(call modules,tests/e2e/tools/crds)

%/grpcurl: MODULE := github.com/fullstorydev/grpcurl
%/prometheus %/promtool: MODULE := github.com/prometheus/prometheus
%/prom-label-proxy: MODULE := github.com/prometheus-community/prom-label-proxy
%/helm: MODULE := helm.sh/helm/v4
%/actionlint: MODULE := github.com/rhysd/actionlint
%/syft: MODULE := github.com/anchore/syft
%/alertmanager: MODULE := github.com/prometheus/alertmanager
%/etcd: MODULE := go.etcd.io/etcd/server/v3
%/kwok: MODULE := sigs.k8s.io/kwok
%/kubectl .cache/e2e/kube-%: MODULE := k8s.io/kubernetes
.cache/e2e/keda-%: MODULE := github.com/kedacore/keda/v2
%/cert-manager-crds.yaml: MODULE := github.com/cert-manager/cert-manager
%/prometheus-operator-crds.yaml: MODULE := github.com/prometheus-operator/prometheus-operator

PACKAGE = $(MODULE)/cmd/$(@F)
%/etcd %/prom-label-proxy: PACKAGE = $(MODULE)
.cache/e2e/keda-%: PACKAGE = $(MODULE)/cmd/$(@F:keda-%=%)

# A release build is told its version by the linker. The module of Prometheus 3.15.0 is v0.315.0.
VERSION = $(patsubst v%,%,$(shell cd $(<D) && go list -m -f '{{.Version}}' $(MODULE) 2>/dev/null))
%/prometheus %/promtool: GO_LINK = -X github.com/prometheus/common/version.Version=$(VERSION:0.3%=3.%)
%/alertmanager: GO_LINK = -X github.com/prometheus/common/version.Version=$(VERSION)
.cache/e2e/keda-%: GO_LINK = -X $(MODULE)/version.Version=$(VERSION)
%/syft: GO_LINK = -X main.version=$(VERSION)
%/helm: GO_LINK = -X $(MODULE)/internal/version.version=v$(VERSION)
%/kubectl .cache/e2e/kube-%: GO_LINK = $(addprefix -X k8s.io/component-base/version.,gitVersion=v$(VERSION) \
	$(join gitMajor= gitMinor=,$(wordlist 1,2,$(subst ., ,$(VERSION)))) gitCommit=unknown gitTreeState=archive)
# Service discovery and the web interface are most of Prometheus' size, and no test needs them.
%/prometheus %/promtool: GO_BUILD := -tags netgo,remove_all_sd

define START
@command -v go >/dev/null \
	|| { echo "$(@F) is built with Go: install Go, or name a ready program in the environment" >&2; exit 1; }
@echo "Building $(@F) from $< (the first build takes minutes)"
@mkdir -p $(@D)
endef
COMPILE = CGO_ENABLED=0 go build -mod=readonly -trimpath -buildvcs=false $(GO_BUILD) \
	-ldflags "-s -w $(GO_LINK)" -o $(abspath $@) $(PACKAGE)
SOURCE = cd $(<D) && go mod download $(MODULE) && go list -m -f '{{.Dir}}' $(MODULE)

$(GO_PROGRAMS):
	$(START)
	@cd $(<D) && $(COMPILE)
	@touch $@

CRD_FOLDER := config/crd/bases
%/cert-manager-crds.yaml: CRD_FOLDER := deploy/crds
%/prometheus-operator-crds.yaml: CRD_FOLDER := example/prometheus-operator-crd
$(CRDS):
	$(START)
	@source=$$($(SOURCE)); for file in "$$source"/$(CRD_FOLDER)/*.yaml; do echo ---; cat "$$file"; done > $@

# The module lacks the web interface that the program embeds: a copy with an empty page is built,
# from the versions and checksums in the copy's own go.mod and go.sum.
.cache/e2e/alertmanager:
	$(START)
	@rm -rf $@.source && source=$$($(SOURCE)) && cp -R "$$source" $@.source && chmod -R u+w $@.source
	@mkdir $@.source/ui/app/dist && touch $@.source/ui/app/dist/index.html
	@cd $@.source && $(COMPILE)
	@rm -rf $@.source && touch $@

# Without root: apt keeps its lists and what it fetches in a folder of ours, so nothing is installed.
# Where from, and the keys to check it against, are the machine's own settings.
PACKAGED_PROGRAM = $(@F:prometheus-2=prometheus)
PACKAGE_NAME = $(PACKAGED_PROGRAM:influxd=influxdb)
APT = apt-get -qq -o Dir::State=$(abspath $@).apt -o Dir::State::status=/dev/null \
	-o Dir::Cache=$(abspath $@).apt -o APT::Sandbox::User=

$(PACKAGED):
	@command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null \
		|| { echo "$(@F) comes from apt, which is not here: name a ready program in the environment," \
			"or leave other servers out: make test-servers SERVERS=prometheus" >&2; exit 1; }
	@echo "Unpacking $(@F) from its package into .cache/servers"
	@rm -rf $@.apt && mkdir -p $@.apt/lists/partial $@.apt/archives/partial
	@$(APT) update && cd $@.apt && $(APT) download $(PACKAGE_NAME)
	@cd $@.apt && dpkg-deb -x $(PACKAGE_NAME)_*.deb . && cp usr/bin/$(PACKAGED_PROGRAM) $(abspath $@)
	@rm -rf $@.apt

# A browser needs a hundred libraries, so its packages are installed, which takes root. The fonts are for
# machines that have none.
$(BROWSER):
	@test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		|| { echo "$(@F) is not here: install Debian's packages chromium and chromium-driver, or name a Chromium" \
			"and its driver in the environment: CHROMIUM=google-chrome CHROMEDRIVER=/path/chromedriver" >&2; exit 1; }
	@echo "Installing chromium, chromium-driver and fonts-dejavu-core with apt-get"
	@apt-get -qq update
	@DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends \
		chromium chromium-driver fonts-dejavu-core >/dev/null
	@mkdir -p $(@D) && ln -sf "$$(command -v $(@F))" $@
