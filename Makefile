# Commands for people and for CI. "make help" lists them.
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

# Packages whose tests mostly wait for servers: more of them run at a time than there are processors.
WAITING = ./stream

# The race detector needs a C compiler; without one, everything else still runs.
RACE = $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && echo -race)

# What the embedded Temporal server is in. It is tested without the race detector: a race build of
# the server takes longer than all other tests together.
HEAVY = $(filter $(shell go list -test -f '{{or .ForTest .ImportPath}} {{join .Deps " "}}' ./... \
	| awk '/ go\.temporal\.io\/server\/temporal( |$$)/ {print $$1}'),$(ALL))
ALL = $(shell go list ./...)
LIGHT = $(filter-out $(HEAVY) $(E2E),$(ALL))
E2E = $(shell go list ./e2e/...)

# Folders with a package.json, whose packages tests need.
NODE_LOCKS := $(wildcard e2e/node/*/package-lock.json clients/*/package-lock.json examples/*/package-lock.json web/package-lock.json)
NODE_READY := $(if $(shell command -v npm),$(NODE_LOCKS:package-lock.json=node_modules/.package-lock.json))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The example whose agents "make dev" has, a folder in examples/; empty = those in agents/.
EXAMPLE ?=

.PHONY: dev
dev: cold ## Build bin/perdure and run everything in one process; ARGS="…" are its flags, EXAMPLE=refund has an example's agents
	go build -o bin/perdure ./cmd/perdure
	$(if $(EXAMPLE),go build -o bin/ ./examples/...)
	exec bin/perdure dev $(if $(EXAMPLE),--agents examples/$(EXAMPLE)/agents) $(ARGS)

.PHONY: build
build: cold ## Build bin/perdure, bin/api and bin/worker
	go build -o bin/ ./cmd/...

.PHONY: cold
cold: # say why the first build is slow
	@if [ "$$(go list -f '{{.Stale}}' go.temporal.io/server/temporal)" = true ]; then \
		echo "The build cache does not have the embedded Temporal server yet: this first build takes minutes, later ones take seconds."; \
	fi

.PHONY: test
test: lint unit heavy clients e2e ## Install what the tests need, and check and test everything

.PHONY: lint
lint: $(TOOLS)/ready cold ## Check formatting, vet, lint, and that workflows are deterministic
	go vet ./...
	cd bench && go vet ./...
	$(TOOLS)/golangci-lint run --allow-serial-runners ./...
	cd bench && $(TOOLS)/golangci-lint run --allow-serial-runners ./...
	$(TOOLS)/workflowcheck ./workflows/...
	go test ./internal/archtest

# What "make check" compares with: the packages that differ from it are tested.
BASE ?= HEAD
CHANGED = $(sort $(patsubst %/,./%,$(dir $(wildcard $(shell git diff --name-only $(BASE) -- '*.go'; git ls-files -o --exclude-standard -- '*.go')))))

.PHONY: check
check: lint ## Check everything and test the packages that differ from BASE (HEAD); takes some two minutes
	$(if $(filter-out ./bench% ./e2e%,$(CHANGED)),go test $(filter-out ./bench% ./e2e%,$(CHANGED)),@echo "No package differs from $(BASE).")

.PHONY: unit
unit: $(NODE_READY) ## Test every package that does not have the embedded Temporal server in it
	@[ -n "$(RACE)" ] || echo "There is no C compiler: the tests run without the race detector."
	go test $(RACE) -parallel 6 -shuffle=on -timeout 30m $(WAITING)
	go test $(RACE) -shuffle=on -timeout 30m $(filter-out $(shell go list $(WAITING)),$(LIGHT))
	cd bench && go test $(RACE) -shuffle=on ./...

.PHONY: heavy
heavy: cold # the packages that have the embedded Temporal server in them
	go test -shuffle=on -timeout 15m $(HEAVY)

.PHONY: clients
clients: cold $(NODE_READY) # the tests of the clients, each with its own runner, against bin/perdure
	go build -o bin/perdure ./cmd/perdure
	@for dir in $(wildcard clients/*/package.json); do \
		command -v npm >/dev/null || { echo "SKIP: $$dir needs npm, which is not installed"; continue; }; \
		npm --prefix "$$(dirname $$dir)" test; \
	done

.PHONY: e2e
e2e: cold $(NODE_READY) ## Test the whole program with real clients
	go build -o bin/e2e/ ./cmd/perdure ./cmd/api ./cmd/worker ./e2e/servers ./e2e/servers/nats ./e2e/servers/temporal
	E2E_PROGRAMS=$(CURDIR)/bin/e2e go test $(RACE) -shuffle=on -timeout 50m $(filter-out $(HEAVY),$(E2E))

SAVED ?= $(CURDIR)/.histories

.PHONY: histories
histories: cold $(NODE_READY) ## Record the histories in workflows/testdata/replay again, by the end-to-end tests
	rm -rf $(SAVED) && mkdir -p $(SAVED)
	E2E_HISTORIES=$(SAVED) go test -timeout 50m ./e2e/...
	go build -cover -covermode=atomic -coverpkg=./workflows,./e2e/replayset -o bin/replayset ./e2e/replayset
	GOCOVERDIR=$(SAVED) bin/replayset $(SAVED) workflows/testdata/replay

# How long the random part of "make chaos" goes on, and the seed that chooses what happens; empty = any.
CHAOS_TIME ?= 3m
CHAOS_SEED ?=

.PHONY: chaos
chaos: cold $(NODE_READY) ## Break what can break in every phase of a run, then at random for CHAOS_TIME; ARGS=-update writes it to the docs
	CHAOS_TIME=$(CHAOS_TIME) CHAOS_SEED=$(CHAOS_SEED) go test $(RACE) -count=1 -v -timeout 6h -run '^(TestMatrix|TestSchedule|TestTenApprovals|TestPipelineKilledAtEachEvent|TestCancelAtAnyMoment|TestUsageEqualsBilledUsage|TestMetricsEqualBilledUsage|TestReliabilityPage)$$' ./e2e/chaos ./e2e/approvals ./e2e/pipelines ./e2e/models -chaos $(ARGS)

# How many nodes "make cluster" kills.
KILLS ?= 20

.PHONY: cluster
cluster: cold $(NODE_READY) ## Kill KILLS NATS nodes under readers (20), and test production's shape by itself
	go test $(RACE) -count=1 -timeout 2h -v -run '^TestReadersSurviveNodes$$' ./stream -kills $(KILLS)
	go test $(RACE) -count=1 -timeout 20m -run '^TestLargeCluster$$' ./e2e/cluster

.PHONY: bench
bench: cold ## Measure what durability costs; ARGS="-quick" for a look
	cd bench && go run . $(ARGS)

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

.PHONY: clean
clean: ## Remove what was built; data in .perdure stays
	rm -rf bin

# Tools are built from a module of their own, where their versions are pinned.
$(TOOLS)/ready: internal/lint/go.mod internal/lint/go.sum
	GOBIN=$(TOOLS) go -C internal/lint install tool
	touch $@

# npm ci is for what the lock file says, and nothing runs at installation.
%/node_modules/.package-lock.json: %/package-lock.json
	npm --prefix $* ci --ignore-scripts --no-audit --no-fund
	touch $@
