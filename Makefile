# Boxwright: everything a developer or an operator of a trial cluster runs. `make help` lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Node 24 comes through npm (an optional dependency for this platform), so that no other installation is needed.
NODE_BIN := $(CURDIR)/node_modules/node-linux-$(if $(filter aarch64,$(shell uname -m)),arm64,x64)/bin
export PATH := $(NODE_BIN):$(CURDIR)/node_modules/.bin:$(PATH)
JEST := NODE_OPTIONS="--experimental-vm-modules --disable-warning=ExperimentalWarning" jest
CLUSTER_SH := hack/cluster/cluster.sh

.PHONY: help
help: ## Lists the targets.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

node_modules/.installed: package.json package-lock.json
	npm ci --no-fund --no-audit
	touch $@

.PHONY: deps
deps: node_modules/.installed ## Installs the npm packages of the lock file, Node 24 among them.

##@ The product on a cluster

.PHONY: up
up: deps ## A cluster, the product in it, and a real run. Again: updates the install.
	hack/up.sh

.PHONY: down
down: ## Removes the cluster and all that make up started.
	$(CLUSTER_SH) down
	rm -rf .local

.PHONY: clean
clean: ## Like down; also removes the cluster's state, dist and node_modules.
	$(CLUSTER_SH) clean
	rm -rf .local dist node_modules

##@ Development

.PHONY: build
build: deps ## Bundles the product into dist/.
	node hack/build.mjs

.PHONY: generate
generate: deps ## Writes CRDs, chart schema and reference docs from the code.
	npm run -s generate

.PHONY: check
check: deps ## Types, lint and format; changes nothing.
	tsc --noEmit
	tsc --noEmit -p src/app
	npm run -s lint
	prettier --check --log-level warn .

.PHONY: verify
verify: generate check ## Generates everything, checks everything, fails on any difference.
	hack/verify-clean.sh

.PHONY: test-unit
test-unit: deps ## Tests that need nothing but Node.
	$(JEST) --selectProjects unit component repo

.PHONY: test-integration
test-integration: deps ## Tests on a real API server (no root, no containers).
	$(CLUSTER_SH) tools >/dev/null
	$(JEST) --selectProjects integration --maxWorkers 3
	$(JEST) --selectProjects load --runInBand

.PHONY: test-clients
test-clients: deps ## MCP clients that others wrote, against the real API process.
	$(JEST) --selectProjects clients

.PHONY: test-e2e
test-e2e: up ## Tests in real pods on the cluster of make up.
	$(JEST) --selectProjects e2e --maxWorkers 4
	$(JEST) --selectProjects e2e-alone --runInBand

.PHONY: runner-weight
runner-weight: deps ## What a run pod loads before its first model call, with CPU seconds and memory on this machine.
	node hack/runner-weight.mjs --measure

.PHONY: model-report
model-report: deps ## The models that the pinned AI SDK packages name and our catalogue does not know, or has no price for.
	node hack/run-ts.mjs hack/model-report.ts

.PHONY: chaos
chaos: deps ## Kills pods, API server and etcd of the cluster of make up while webhooks arrive, then checks the promises.
	node hack/run-ts.mjs test/chaos/main.ts

.PHONY: bench
bench: deps ## Measures webhooks, MCP reads, a burst of 5,000 runs and a flood of 100,000 hits on an API server of its own: BENCH=webhook|mcp|burst|flood.
	$(CLUSTER_SH) tools >/dev/null
	node hack/run-ts.mjs test/bench/main.ts

.PHONY: test
test: ## All tests: verify, unit, component, repo, integration, load, clients, e2e in real pods.
	hack/test.sh
