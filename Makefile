# What can be done here, in short: "make help". Go, git and make are all that is needed, and a C compiler for "make race".
#
# Variables:
#   ARGS      for the benchmarks, more arguments of go test; passed to the demos: -v prints more, and -keep leaves the operator of the first demo running
#   REAL      true runs tests and demos on etcd and kube-apiserver, not on the in-process server
#   RUN       the tests to run, as in go test -run
#   BENCH     the benchmarks to run, as in go test -bench
#   COUNT     how often each benchmark runs, or each test
#   TIMEOUT   for the tests of one package
#   RACE      1 runs the tests with the race detector, but for those that show less with it
#   STEPS     the steps of test/steps.txt whose tests "make steps" runs, with commas
#   SEEDS     how many seeds each story is simulated with
#   PROJECTS  which projects "make projects" makes: all, or a commit whose hash chooses two
#   STEP      the steps of "make nightly" to run, with commas
#   VERSION   what "make release" is for, and PLATFORMS which systems, such as "linux/amd64 darwin/arm64"
# In the environment:
#   KUBEBUILDER_ASSETS          a folder with etcd, kube-apiserver and kube-controller-manager; none are built then
#   ESPALIER_CONTROLPLANE_DIR   where they are kept once built, by default in the user's cache
#   ESPALIER_E2E=1              has "go test" run the tests on a simulated cluster too, as "make e2e" does
#   ESPALIER_FAULTS=all         has the fault matrix try pairs of faults too, as "make faults" does
#   ESPALIER_PROJECTS           what PROJECTS says, for "go test"; by default one project is made
#   USE_EXISTING_CLUSTER=true   runs the demos on the cluster of the current kubeconfig

ARGS    ?=
REAL    ?=
RUN     ?=
BENCH   ?= .
COUNT   ?= 1
TIMEOUT ?= 30m
RACE    ?=
STEPS   ?= race,norace,allocations,stories,faults,projects,real
SEEDS   ?=
PROJECTS ?= all
STEP    ?=
VERSION ?=
PLATFORMS ?=

GO    := go
# With -trimpath, what was made of one clone counts for others.
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath

TOOLS := $(CURDIR)/bin/tools

# Every folder with a go.mod, but for test data.
MODULES := $(shell git ls-files --cached --others --exclude-standard 'go.mod' '*/go.mod' | grep -v testdata | sort | xargs -n 1 dirname)
$(if $(MODULES),,$(error git does not list the modules: the tools need a checkout that git can read))

# each runs a command in the folder of every module. In the end it says for which modules it failed.
each = @failed=; for module in $(MODULES); do echo "==> $$module: $(strip $(1))"; (cd $$module && $(1)) || failed="$$failed $$module"; \
	done; [ -z "$$failed" ] || { echo "it failed in:$$failed" >&2; exit 1; }

# A pipe fails if one of its commands does.
SHELL       := bash
.SHELLFLAGS := -o pipefail -c

# What is built for tests on a control plane: nothing, as the in-process server is in the tests.
server = $(if $(filter true,$(REAL)),controlplane)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(if $(filter true,$(REAL)),controlplane) ## Show running operators step by step, on clusters in the process (REAL=true: on real API servers; ARGS=-keep: to try things; ARGS=-page: in a browser).
	@build='$(GO) -C examples/demo build -ldflags=-w -o $(CURDIR)/bin/demo/'; \
		$(if $(filter %-page,$(ARGS)),$$build ./platform && exec bin/demo/platform $(ARGS);) \
		$$build ./shop && examples/shop/plugins/build $(CURDIR)/bin/demo/plugins || exit 1; \
		$(if $(filter %-keep,$(ARGS)),exec bin/demo/shop $(ARGS);) \
		$$build ./platform & building=$$!; \
		bin/demo/shop $(ARGS) && wait $$building && bin/demo/platform $(ARGS)

# Linking takes less time without debugging information and symbols. Tests on an API server wait for it most of the time,
# so more of them run at a time than there are processors, and so do packages. "make check" runs what go vet does.
TESTFLAGS = -vet=off -ldflags=-s -p 4 -parallel 8 -timeout $(TIMEOUT) $(if $(filter-out 1,$(COUNT)),-count=$(COUNT)) \
	$(if $(RUN),-run '$(RUN)')

# run-steps runs the tests of steps, which test/steps.txt has, with more arguments for go test.
run-steps = hack/step $(1) $(TESTFLAGS) $(2)

.PHONY: quick
quick: ## Run the tests that need no control plane, but for simulations, those that a change concerns.
	@hack/quick $(filter-out test/monitoring testing/internal/kubernetes examples/demo cmd/espalier,$(patsubst ./%,%,$(MODULES)))

.PHONY: test
test: steps ## Run all tests of all modules but what "make check", "make demo" and "make nightly" run.

comma   := ,
without = $(subst $() ,$(comma),$(filter-out $(1),$(subst $(comma), ,$(STEPS))))

# The race detector is for the tests of the steps "race" and "real". It would wait for a second at the end of each process,
# for reports of goroutines, but tests leave none.
.PHONY: steps
steps: $(if $(RACE),compiler) $(server)
	@$(if $(RACE),failed=; $(foreach step,$(filter race real,$(subst $(comma), ,$(STEPS))), \
		CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(call run-steps,$(step),-race) || failed=1;) \
		$(if $(call without,race real),$(call run-steps,$(call without,race real)) || failed=1;) [ -z "$$failed" ],\
		$(call run-steps,$(STEPS)))

.PHONY: race
race: ## The same with the race detector, but for tests that show less with it.
	@$(MAKE) --no-print-directory test RACE=1

# These compare with a real API server, or need more than one.
real e2e bench: export REAL = true

.PHONY: real
real: controlplane ## Run the tests of test/real.txt, which need kube-apiserver.
	@$(MAKE) --no-print-directory steps STEPS=real

.PHONY: nightly
nightly: ## Run what .ci/run has no time for, and go on where that was cut (STEP=stories: one step; bin/nightly.txt: the results).
	@hack/nightly $(subst $(comma), ,$(STEP))

.PHONY: fresh
fresh: ## Run the two commands of the README from nothing: a clone of the last commit, and empty caches.
	@hack/fresh

.PHONY: faults
faults: ## Run the fault matrix of components with pairs of faults.
	@ESPALIER_FAULTS=all hack/step faults $(TESTFLAGS)

.PHONY: simulate
simulate: $(server) ## Run operators in simulated clusters, under faults and in virtual time (SEEDS=1000 tries more).
	@$(call run-steps,stories,$(if $(SEEDS),-args -simulation.seeds=$(SEEDS)))

.PHONY: e2e
e2e: controlplane cluster ## Run operators on a cluster with real controllers and a scheduler, and simulated nodes.
	ESPALIER_E2E=1 $(GO) test $(TESTFLAGS) ./test/e2e

.PHONY: projects
projects: $(server) ## Make twelve projects and one of a plugin by "espalier new", and build, check, test and run each (PROJECTS).
	@ESPALIER_PROJECTS=$(PROJECTS) $(call run-steps,projects,-parallel 2)

.PHONY: browser
browser: ## Test the page of an operator in Chromium, with axe-core from npm (PICTURES=1: renew the pictures in docs).
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
		echo "there is no Chromium: install it (Debian: apt-get install chromium)" >&2; exit 1; }
	@axe=$$(hack/axe) && cd test/browser && ESPALIER_AXE=$$axe $(if $(PICTURES),ESPALIER_PICTURES=$(CURDIR)/docs/pictures) \
		$(GO) test $(TESTFLAGS) -count=1 -v .

.PHONY: allocations
allocations: $(server) ## Run the tests that show less with the race detector: those that count allocations or try many cases.
	@$(call run-steps,allocations)

.PHONY: compiler
compiler:
	@cc=$$($(GO) env CC); command -v $${cc%% *} >/dev/null || { \
		echo "the race detector needs a C compiler, and there is no $$cc" >&2; exit 1; }

.PHONY: bench
bench: controlplane ## Run the benchmarks.
	$(call each,$(CURDIR)/hack/bench '$(BENCH)' $(COUNT) $(TIMEOUT) $(ARGS))

.PHONY: size
size: ## Compare the size of an operator with that of one that uses controller-runtime alone.
	@hack/size

.PHONY: check
check: check-format check-tidy check-analyze check-sizes check-waits check-steps check-files check-generated ## Everything that reads code without running it.

.PHONY: check-format
check-format: ## Formatting.
	@files=$$(gofmt -l .); [ -z "$$files" ] || { echo "not formatted (run gofmt -w):"; echo "$$files"; exit 1; }

.PHONY: check-tidy
check-tidy: ## go.mod and go.sum.
	$(call each,$(GO) mod tidy -diff)

.PHONY: check-analyze
check-analyze: $(TOOLS)/built ## The analyzers of go vet and of staticcheck, configured in staticcheck.conf.
	$(call each,$(TOOLS)/analyze ./...)

.PHONY: check-sizes
check-sizes: ## That lines, functions and files are not too long, and that package comments name files that exist.
	@$(GO) -C hack/tools run ./sizes $(CURDIR)

.PHONY: check-waits
check-waits: ## That no test waits for a time, but in a simulation.
	@$(GO) -C hack/tools run ./waits $(CURDIR)

.PHONY: check-steps
check-steps: ## That each package has a step that runs its tests.
	@$(GO) -C hack/tools run ./steps $(CURDIR) check

.PHONY: check-files
check-files: ## That packages import what is below them, that links lead somewhere, and that pages agree with the code.
	@hack/step check -count=1

.PHONY: check-generated
check-generated: ## That generated files are what "make generate" makes of the sources.
	@hack/unchanged $(MAKE) --no-print-directory generate

.PHONY: generate
generate: $(TOOLS)/built ## Generate deep copies, what docs has from doc comments, what packages export, and what go:generate directives ask for.
	$(TOOLS)/controller-gen object paths=./...
	cd generator/kustomize && $(TOOLS)/controller-gen object paths=./...
	PATH="$(TOOLS):$$PATH" $(GO) generate ./...
	PATH="$(TOOLS):$$PATH" $(GO) -C examples/platform/delivery generate ./...
	PATH="$(TOOLS):$$PATH" $(GO) -C examples/shop/plugins generate ./...
	$(GO) -C hack/protocol run . $(CURDIR)/plugins/proto/espalier_plugins_v1.proto $(CURDIR)/plugins/internal/protocol
	PATH="$(TOOLS):$$PATH" $(GO) -C cmd/espalier generate ./internal/scaffold
	hack/real >test/real.txt
	$(GO) -C hack/tools run ./docs $(CURDIR)
	$(GO) -C hack/tools run ./exported $(CURDIR) $(filter-out hack/%,$(MODULES))

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver and kube-controller-manager, once per machine (about 8 minutes).
	@$(GO) -C hack/controlplane run .

.PHONY: cluster
cluster: ## Build kube-scheduler and kwok for make e2e, once per machine (about 2 minutes).
	@$(GO) -C hack/controlplane run . cluster

.PHONY: kubectl
kubectl: ## Build kubectl of the minor version of the API server in the process, as bin/kubectl.
	@version=$$($(GO) -C hack/kubectl list -m -f '{{.Version}}' k8s.io/kubectl | sed s/^v0/v1/) && \
	$(GO) -C hack/kubectl build -o $(CURDIR)/bin/kubectl \
		-ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$$version" .

.PHONY: published
published: ## Compile the modules as they are published, from a module proxy of its own, and start a project by the two lines of the README.
	@hack/published

.PHONY: release
release: ## Write what is released to bin/release: modules, archives of the command, a manifest for krew (VERSION=v1.2.3; PLATFORMS).
	$(GO) -C hack/tools run ./release -version '$(VERSION)' -proxy $(CURDIR)/bin/release/proxy -archives $(CURDIR)/bin/release \
		$(if $(PLATFORMS),-platforms '$(PLATFORMS)') $(CURDIR)

.PHONY: clean
clean: ## Remove bin. The control plane stays in the user's cache.
	rm -rf bin

$(TOOLS)/built: hack/tools/go.mod hack/tools/go.sum $(wildcard hack/tools/analyze/*.go)
	$(GO) -C hack/tools build -o $(TOOLS)/ tool
	@touch $@
