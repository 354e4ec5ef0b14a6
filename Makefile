# What people run here; `make` alone lists it. .ci/run is `make test examples chaos
# test-clients bench-quick` on a bare machine.

GO        ?= go
FUZZTIME  ?= 30s
# A regular expression of what to fuzz.
FUZZ      ?= .
# The vulnerability database, if not the usual one.
VULNDB    ?=
# Seconds to wait for it to answer.
VULNPROBE ?= 10

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
TOOL        := $(GO) tool -modfile=tools/go.mod

# What test-clients needs beside Go. A Node of its own is only there if the
# machine's is too old.
TOOLS20     := command -v npm >/dev/null && command -v curl >/dev/null && \
               node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null
OWNNODE     := clients/.node

.PHONY: help test check servers prometheus nginx vuln examples chaos test-clients node demo fuzz bench bench-redis bench-timing bench-quick
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s  %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

test: check servers ## everything that must pass before a change goes in
	@race=-race; cc=$$($(GO) env CC); \
	if [ "$$($(GO) env CGO_ENABLED)" != 1 ] || ! command -v "$${cc%% *}" >/dev/null; then \
		echo 'no C compiler: tests run without -race'; race=; \
	fi; \
	set -x; $(GO) test $$race -shuffle=on -count=1 ./...
	@# The attacks on all presets and the longest walks of stores, which the race
	@# detector would slow down tenfold.
	$(GO) test -count=1 ./policies ./cmd/guardctl
	$(GO) test -count=1 -run 'TestConformance|TestDecisionsAreTheSame' ./limiter/...
	@$(MAKE) vuln

servers: ## the servers that tests start, installed where that is possible
	@missing=$$(for server in redis-server memcached prometheus nginx; do command -v $$server >/dev/null || echo $$server; done); \
	if [ -z "$$missing" ]; then exit; fi; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "not installed, so tests over it are skipped:" $$missing; exit; \
	fi; \
	export DEBIAN_FRONTEND=noninteractive; \
	apt-get update -qq; \
	whole=$$(grep -vxE 'prometheus|nginx' <<<"$$missing" || true); \
	if [ -n "$$whole" ]; then apt-get install -y -qq --no-install-recommends $$whole >/dev/null; fi; \
	for server in prometheus nginx; do \
		if grep -qx $$server <<<"$$missing"; then $(MAKE) $$server; fi; \
	done

# Of Debian's package only the programs: the whole brings a dozen others for its
# pages, and starts a service.
prometheus:
	@dir=$$(mktemp -d); trap 'rm -r "$$dir"' EXIT; cd "$$dir"; \
	apt-get download -qq -o APT::Sandbox::User=root prometheus; \
	dpkg --fsys-tarfile prometheus_*.deb | tar -x -C /usr/local/bin --strip-components=3 ./usr/bin

# Only the program and the libraries that it needs: the whole starts a service.
nginx:
	@dir=$$(mktemp -d); trap 'rm -r "$$dir"' EXIT; cd "$$dir"; \
	apt-get download -qq -o APT::Sandbox::User=root nginx; \
	dpkg --fsys-tarfile nginx_*.deb | tar -x -C /usr/local/bin --strip-components=3 ./usr/sbin; \
	libraries=$$(dpkg --field nginx_*.deb Depends | tr ',' '\n' | sed -n 's/^ *\(lib[^ ]*\|zlib[^ ]*\).*/\1/p'); \
	nginx -v 2>/dev/null || apt-get install -y -qq --no-install-recommends $$libraries >/dev/null

check: ## format, vet and staticcheck: the quick part of test
	@list=$$(gofmt -l .); \
	if [ -n "$$list" ]; then printf 'not formatted, run gofmt -w on:\n%s\n' "$$list"; exit 1; fi
	$(GO) vet ./...
	$(TOOL) staticcheck ./...

vuln: ## known vulnerabilities, where their database can be reached
	@scan=($$($(TOOL) -n govulncheck) $(if $(VULNDB),-db=$(VULNDB))); \
	if timeout $(VULNPROBE) "$${scan[@]}" -version 2>/dev/null | grep '^DB updated' >/dev/null; then \
		set -x; "$${scan[@]}" ./...; \
	else \
		echo 'govulncheck: database not reachable, skipped'; \
	fi

# A module of its own: no framework is a dependency of authguard. The tag leaves
# out a codec of gin's that takes half a minute to compile.
examples: ## vet and test the examples
	$(GO) -C examples test -vet=all -tags nomsgpack -count=1 -timeout 2m ./...

chaos: servers ## break real servers under load and hold the bounds, in two minutes
	@# Without a server `servers` has said so; in CI it must be there.
	@command -v redis-server >/dev/null || [ -n "$${CI:-}" ] || exit 0; \
	set -x; $(GO) test ./internal/chaos -run '^TestChaos$$' -count=1 -timeout 4m -v -chaos

test-clients: node ## other people's clients and parsers against the demo and the edge, in a minute
	@# What is missing `node` has said; in CI it must be there.
	@if ! { $(TOOLS20); }; then [ -z "$${CI:-}" ]; exit; fi; \
	$(MAKE) -s clients/node_modules/.package-lock.json; \
	check=$$($(TOOL) -n staticcheck); cd clients; set -x; \
	$(GO) vet .; "$$check" .; \
	$(GO) test -count=1 -parallel 16 -timeout 5m

# Debian 12 has Node 18, which is too old for some of the clients.
node: ## Node 20, npm and curl, installed where that is possible
	@if $(TOOLS20); then exit; fi; \
	missing=$$(for tool in node npm curl; do command -v $$tool >/dev/null || echo $$tool; done); \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		export DEBIAN_FRONTEND=noninteractive; \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $${missing/node/nodejs} >/dev/null; } || true; \
		hash -r; \
	fi; \
	if ! { $(TOOLS20); } && command -v npm >/dev/null && command -v node >/dev/null; then \
		npm install --silent --prefix $(OWNNODE) node-linux-$$(node -p process.arch)@20 >/dev/null || true; \
		hash -r; \
	fi; \
	$(TOOLS20) || echo 'test-clients needs Node 20, npm and curl, which are not all here: skipped, or failed in CI'

node test-clients: export PATH := $(CURDIR)/$(OWNNODE)/node_modules/.bin:$(PATH)

# npm writes this file at the end.
clients/node_modules/.package-lock.json: clients/package-lock.json
	@npm ci --prefix clients --prefer-offline --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000 \
		--ignore-scripts --no-audit --no-fund --silent || \
		{ echo 'test-clients: npm cannot get the packages; `npm ci --prefix clients` tells why'; exit 1; }

demo: ## run the demo service
	$(GO) run ./cmd/demo

fuzz: ## run every fuzz target for FUZZTIME
	@pkgs=$$($(GO) list ./...); \
	for pkg in $$pkgs; do \
		targets=$$($(GO) test -list '^Fuzz' $$pkg); \
		for target in $$(grep '^Fuzz' <<<"$$targets" | grep -E '$(FUZZ)' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

# A module of its own: no peer is a dependency of authguard, and no test needs one.
bench: servers ## measure beside peers and floors, in ten minutes; rewrites docs/benchmarks.md
	$(GO) -C bench run . -docs ../docs

bench-redis: servers ## the part of bench over Redis, in three minutes
	$(GO) -C bench run . redis

bench-timing: ## whether the demo's answers tell by their time which accounts there are, in a minute
	$(GO) -C bench run . timing

bench-quick: servers ## vet and test bench, and have all its answers checked, in two minutes
	$(GO) -C bench vet ./...
	$(GO) -C bench tool -modfile=../tools/go.mod staticcheck ./...
	$(GO) -C bench test -count=1 ./...
	$(GO) -C bench run . -quick >/dev/null
