# Every target that a person calls carries a line of help.
.DEFAULT_GOAL := help
.PHONY: help tools run demo build test lint vulncheck clean

# Linters run at these versions without being part of go.mod: the functions don't need them.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

PYTHON ?= python3
CLI    := .local/bin/paidonce

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(CLI) tools ## start the local stack, walk one order through it, and keep serving until Ctrl-C
	@$(CLI) dev

demo: $(CLI) tools ## the same walk without staying: exit status 0 only if every step ended as promised
	@$(CLI) dev --demo

test: tools lint ## run everything that proves it: linters, then all tests
	go test ./...

lint: tools ## gofmt, go vet, staticcheck, the template's linters
	@.ci/need-gofmt
	go vet ./...
	go run $(STATICCHECK) ./...
	.tools/bin/sam validate --lint --template template.yaml
	.tools/bin/cfn-lint --regions us-east-1 ap-south-1 -- template.yaml

vulncheck: ## look the dependencies up in Go's vulnerability database
	go run $(GOVULNCHECK) ./...
