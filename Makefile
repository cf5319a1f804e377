# Everything here is a plain go command; "make ci" is what a change has to pass.
CACHE ?= $(or $(DEERBOT_CI_CACHE),$(HOME)/.cache/deerbot-ci)
GOLANGCI_VERSION := v2.15.0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

.PHONY: all build test race lint fmt generate fuzz bench ci smoke clean

all: build

build: ## static binary in bin/
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.release=$(VERSION)" -o bin/deerbot ./cmd/deerbot

test: ## all tests: loopback only, no services, no C compiler
	go test ./...

race: ## the same with the race detector; needs a C compiler
	CGO_ENABLED=1 go test -race ./...

lint: $(CACHE)/bin/golangci-lint
	$(CACHE)/bin/golangci-lint run ./...

fmt: $(CACHE)/bin/golangci-lint
	$(CACHE)/bin/golangci-lint fmt ./...

$(CACHE)/bin/golangci-lint:
	GOBIN=$(CACHE)/bin CGO_ENABLED=0 go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

generate: ## rewrite what is made from the code: example, schema, reference, features, golden files
	go test ./config ./commands ./cards ./runtime/event ./runtime/middleware ./internal/features ./cmd/deerbot -update

fuzz: ## every fuzz target for FUZZTIME (10s)
	@set -e; for dir in $$(go list -f '{{.Dir}}' ./...); do \
	  for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go 2>/dev/null | sed 's/func //'); do \
	    echo "== $$dir $$target"; (cd $$dir && go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $${FUZZTIME:-10s} .); \
	  done; \
	done

bench: ## benchmarks
	go test -run '^$$' -bench . -benchmem ./...

smoke: build
	.ci/smoke bin/deerbot

ci:
	.ci/run

clean:
	rm -rf bin
