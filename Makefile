# Commands for developers and for CI. "make help" lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables

# Flags for the program that a target starts: make dev ARGS="--addr 127.0.0.1:9000"
ARGS ?=
# How long each fuzz target runs.
FUZZTIME ?= 20s

TOOLS := $(CURDIR)/bin/tools

# The race detector needs a C compiler. Without one, the tests run without the race detector.
RACE = $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && echo -race)

# Flags of all tests. "make lint" vets the tests, too, so "go test" need not do it again.
# Binaries for tests have no DWARF (-s -w): linking them takes a third less time.
TEST = go test -vet=off -shuffle=on -ldflags="-s -w"

# Tests that last long collect garbage less often: it takes a quarter of their CPU time otherwise.
unit e2e: export GOGC = 400

# Packages that link the embedded Temporal server. They run without the race detector, because a race
# build of the server takes longer than all other tests together.
HEAVY = $(filter $(shell go list -test -f '{{or .ForTest .ImportPath}} {{join .Deps " "}}' ./... \
	| awk '/ go\.temporal\.io\/server\/temporal( |$$)/ {print $$1}'),$(ALL))
ALL = $(shell go list ./...)
# Packages for "make unit". archtest runs in "make lint".
LIGHT = $(filter-out $(HEAVY) $(E2E) %/internal/archtest,$(ALL))
E2E = $(shell go list ./e2e/...)

# $(call FIRST,packages,patterns) are the packages, those of the patterns first. go test starts packages
# in this order: the longest ones begin first, so that none of them runs alone at the end.
FIRST = $(filter $(2),$(1)) $(filter-out $(2),$(1))

# Directories with npm packages that tests need.
NODE_LOCKS := $(wildcard e2e/node/*/package-lock.json clients/*/package-lock.json examples/*/package-lock.json web/package-lock.json)
NODE_READY := $(if $(shell command -v npm),$(NODE_LOCKS:package-lock.json=node_modules/.package-lock.json))

# The npm package of the TypeScript client, which bin/perdure carries for "perdure new chat". Without npm,
# perdure is built without it. npm run build generates src/openapi.ts.
CLIENT := internal/starter/client/perdure-client.tgz
CLIENT_SOURCES := $(filter-out %/src/openapi.ts,$(shell find clients/typescript/src -type f)) \
	$(addprefix clients/typescript/,package.json tsconfig.json README.md) api/openapi.yaml
CLIENT_READY := $(if $(shell command -v npm),$(CLIENT))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The directory in examples/ whose agents "make dev" serves; empty = the agents in agents/.
EXAMPLE ?=

.PHONY: dev
dev: cold $(CLIENT_READY) ## Build bin/perdure and run everything in one process; ARGS="…" are its flags, EXAMPLE=refund serves an example
	go build -o bin/perdure ./cmd/perdure
	$(if $(EXAMPLE),go build -o bin/ ./examples/...)
	exec bin/perdure dev $(if $(EXAMPLE),--agents examples/$(EXAMPLE)) $(ARGS)

.PHONY: build
build: cold $(CLIENT_READY) ## Build bin/perdure, bin/api and bin/worker
	go build -o bin/ ./cmd/...

.PHONY: cold
cold: # print why the first build is slow
	@if [ "$$(go list -f '{{.Stale}}' go.temporal.io/server/temporal)" = true ]; then \
		echo "The first build compiles the embedded Temporal server and takes minutes. Later builds take seconds."; \
	fi

.PHONY: test
test: cold ## Install what the tests need, then check and test everything
	@$(MAKE) --no-print-directory console
	@# The linters and the clients wait a third of the time: they run together.
	@$(MAKE) --no-print-directory --jobs=2 --output-sync golangci rules clients
	@$(MAKE) --no-print-directory unit heavy e2e

.PHONY: lint
lint: ## Check formatting, lint (with vet), and that workflows are deterministic
	@$(MAKE) --no-print-directory --jobs=2 --output-sync golangci rules

.PHONY: golangci
golangci: $(TOOLS)/ready cold # format, vet and lint
	$(TOOLS)/golangci-lint run --allow-serial-runners ./...
	cd bench && $(TOOLS)/golangci-lint run --allow-serial-runners ./...
	cd internal/pin && $(TOOLS)/golangci-lint run --allow-serial-runners ./...
	cd e2e/buckets && $(TOOLS)/golangci-lint run --allow-serial-runners ./...

.PHONY: rules
rules: $(TOOLS)/ready cold openssl # check that workflows are deterministic, and the rules of the code's structure
	$(TOOLS)/workflowcheck ./workflows/...
	go test ./internal/archtest

# The commit that "make check" compares with. It tests the packages that differ. "make bench" compares only with a
# BASE of the command line.
BASE ?= HEAD
CHANGED = $(sort $(patsubst %/,./%,$(dir $(wildcard $(shell git diff --name-only $(BASE) -- '*.go'; git ls-files -o --exclude-standard -- '*.go')))))

.PHONY: check
check: lint ## Check everything and test the packages that differ from BASE (HEAD); takes about two minutes
	$(if $(filter-out ./bench% ./e2e%,$(CHANGED)),go test $(filter-out ./bench% ./e2e%,$(CHANGED)),@echo "No package differs from $(BASE).")

.PHONY: unit
unit: $(NODE_READY) ## Test the packages that do not link the embedded Temporal server
	@[ -n "$(RACE)" ] || echo "There is no C compiler: the tests run without the race detector."
	$(TEST) $(RACE) -timeout 30m $(call FIRST,$(LIGHT),%/perdure/stream %/perdure/api %/agents/pipeline)
	cd bench && $(TEST) $(RACE) ./...
	cd internal/pin && $(TEST) $(RACE) ./...

.PHONY: heavy
heavy: cold openssl # test the packages that link the embedded Temporal server
	$(TEST) -timeout 15m $(HEAVY)

# The sources of the console, of which internal/console/dist is built.
CONSOLE := internal/console/dist

.PHONY: web
web: web/node_modules/.package-lock.json clients/typescript/node_modules/.package-lock.json ## Check the types of the console, and build it into internal/console/dist, which is committed
	npm --prefix web run types
	npm --prefix web run build

.PHONY: console
console: $(NODE_READY) # check that internal/console/dist is what "make web" builds
	@command -v npm >/dev/null || { echo "SKIP: the console needs npm, which is not installed"; exit 0; }; \
	npm --prefix web run --silent types && npm --prefix web run --silent build -- --outDir $(CURDIR)/bin/console --logLevel warn && \
	diff -r bin/console $(CONSOLE) >/dev/null || { echo "$(CONSOLE) differs from what web/ builds: run make web, and commit the result"; exit 1; }

.PHONY: clients
clients: cold $(NODE_READY) # test the clients, each with its own runner, against bin/perdure
	go build -o bin/perdure ./cmd/perdure
	@for dir in $(wildcard clients/*/package.json); do \
		command -v npm >/dev/null || { echo "SKIP: $$dir needs npm, which is not installed"; continue; }; \
		npm --prefix "$$(dirname $$dir)" test; \
	done

.PHONY: openssl
openssl: # install Debian's openssl for tests of deploy/setup.sh, if this is root on Debian
	@command -v openssl >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends openssl >/dev/null; } \
		|| echo "There is no openssl: tests that need it are skipped."

.PHONY: debian
debian: # install Debian's Chromium and nginx for tests of pages, and clamd for those of files, if this is root on Debian
	@{ command -v chromium && command -v nginx; } >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium nginx-light >/dev/null; } \
		|| echo "There is no Chromium or no nginx: tests that need them are skipped."
	@command -v clamd >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends clamav-daemon >/dev/null; } \
		|| echo "There is no clamd: the test that needs it is skipped."

.PHONY: e2e
e2e: cold debian openssl $(NODE_READY) $(CLIENT_READY) ## Test the whole program with real clients
	go build -ldflags="-s -w" -o bin/e2e/ ./cmd/perdure ./cmd/api ./cmd/worker ./e2e/servers ./e2e/servers/nats ./e2e/servers/temporal
	E2E_PROGRAMS=$(CURDIR)/bin/e2e $(TEST) -timeout 50m $(call FIRST,$(filter-out $(HEAVY),$(E2E)),%/cluster %/console %/remote %/pipelines %/runs %/chaos %/clients %/docs %/approvals)

.PHONY: screenshots
screenshots: cold debian $(NODE_READY) $(CLIENT_READY) ## Make the pictures in docs/guides/images again, in Chromium
	go test -count=1 ./e2e/docs ./e2e/console -run '^(TestReactGuides|TestConsoleGuide)$$' -screenshots $(CURDIR)/docs/guides/images

SAVED ?= $(CURDIR)/.histories

.PHONY: histories
histories: cold $(NODE_READY) $(CLIENT_READY) ## Record workflows/testdata/replay again from the end-to-end tests
	rm -rf $(SAVED) && mkdir -p $(SAVED)
	E2E_HISTORIES=$(SAVED) go test -timeout 50m ./e2e/...
	go build -cover -covermode=atomic -coverpkg=./workflows,./e2e/replayset -o bin/replayset ./e2e/replayset
	GOCOVERDIR=$(SAVED) bin/replayset $(SAVED) workflows/testdata/replay

# Duration of the random part of "make chaos", and the seed of its faults and times; empty = random.
CHAOS_TIME ?= 3m
CHAOS_SEED ?=

.PHONY: chaos
chaos: cold $(NODE_READY) ## Inject every fault into every phase of a run, then random faults for CHAOS_TIME; ARGS=-update writes the matrix of reliability.md
	CHAOS_TIME=$(CHAOS_TIME) CHAOS_SEED=$(CHAOS_SEED) go test $(RACE) -count=1 -v -timeout 6h -run '^(TestMatrix|TestSchedule|TestTenApprovals|TestPipelineKilledAtEachEvent|TestCancelAtAnyMoment|TestUsageEqualsBilledUsage|TestMetricsEqualBilledUsage|TestReliabilityPage|TestFrameworksSurviveKills|TestEventsSurviveKills)$$' ./e2e/chaos ./e2e/approvals ./e2e/pipelines ./e2e/models ./e2e/remote ./e2e/events -chaos $(ARGS)

# Number of NATS nodes that "make cluster" kills.
KILLS ?= 20

.PHONY: cluster
cluster: cold $(NODE_READY) ## Kill KILLS (20) NATS nodes during reads, and test a production-like cluster
	go test $(RACE) -count=1 -timeout 2h -v -run '^TestReadersSurviveNodes$$' ./stream -kills $(KILLS)
	go test $(RACE) -count=1 -timeout 20m -run '^TestLargeCluster$$' ./e2e/cluster

.PHONY: bench
bench: cold $(filter e2e/node/copilotkit/%,$(NODE_READY)) ## Measure the cost of durability; ARGS="-quick" is a short run, BASE=COMMIT compares with a commit
	cd bench && go run . $(and $(filter command,$(origin BASE)),$(BASE),-base $(BASE)) $(ARGS)

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (20s)
	@{ grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . || true; } | sed 's|/[^/]*:func | |' | sort | while read -r package target; do \
		echo "$$package $$target"; \
		go -C "$$package" test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) .; \
	done

.PHONY: format
format: $(TOOLS)/ready ## Format all Go files
	$(TOOLS)/golangci-lint fmt ./...

.PHONY: docs
docs: cold ## Rewrite the parts of docs/reference that are generated from the code
	go test -count=1 ./internal/reference ./internal/process/config ./internal/process/telemetry ./cmd/perdure -run 'Reference$$' -update

.PHONY: vulncheck
vulncheck: $(TOOLS)/ready cold ## Look for known vulnerabilities in code that the programs call; needs https://vuln.go.dev
	@$(TOOLS)/govulncheck ./... || { [ $$? = 3 ] || echo "Nothing was checked: govulncheck needs the database at https://vuln.go.dev, or GOVULNDB."; exit 1; }

# What a release has: each program, the same from any directory, and its list of modules.
PROGRAMS = api worker perdure
RELEASE = CGO_ENABLED=0 GOFLAGS=-trimpath

.PHONY: sbom
sbom: $(TOOLS)/ready cold ## Build PROGRAMS into bin/release, and list the modules of each binary in the form of CycloneDX
	$(RELEASE) go build -o bin/release/ $(addprefix ./cmd/,$(PROGRAMS))
	@for program in $(PROGRAMS); do \
		$(TOOLS)/cyclonedx-gomod bin -json -licenses -std -noserial -version "$$(git describe --tags --always --dirty)" \
			-output bin/release/$$program.cdx.json bin/release/$$program; \
	done

.PHONY: reproduce
reproduce: cold ## Build PROGRAMS of the commit in two directories, and compare the binaries
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && for copy in first second/clone; do \
		git clone --quiet --no-hardlinks . "$$dir/$$copy" && \
		(cd "$$dir/$$copy" && $(RELEASE) go build -o "$$dir/bin-$${copy%%/*}/" $(addprefix ./cmd/,$(PROGRAMS))); \
	done && cd "$$dir/bin-first" && sha256sum * | tee "$$dir/sums" && cd "$$dir/bin-second" && sha256sum --check --quiet "$$dir/sums" && echo "Both directories have the same binaries."

.PHONY: pin
pin: ## Give the images in Dockerfile, docker-compose.yml and deploy the digests of their tags; ARGS=-check compares
	go -C internal/pin build -o $(CURDIR)/bin/pin .
	@bin/pin $(ARGS) Dockerfile docker-compose.yml deploy

.PHONY: clean
clean: ## Remove bin; the data in .perdure stays
	rm -rf bin $(CLIENT)

# Tools are built from a separate module, which pins their versions.
$(TOOLS)/ready: internal/lint/go.mod internal/lint/go.sum
	GOBIN=$(TOOLS) go -C internal/lint install tool
	touch $@

$(CLIENT): clients/typescript/node_modules/.package-lock.json $(CLIENT_SOURCES)
	npm --prefix clients/typescript run build
	rm -f $(@D)/*.tgz
	npm pack ./clients/typescript --pack-destination $(@D) --loglevel error
	mv $(@D)/perdure-client-*.tgz $@
	touch $@

# npm ci installs the versions of the lock file. Packages run no scripts during the installation.
%/node_modules/.package-lock.json: %/package-lock.json
	npm --prefix $* ci --ignore-scripts --no-audit --no-fund
	touch $@
