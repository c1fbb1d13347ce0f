# make help lists what a person calls.
.DEFAULT_GOAL := help
SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.PHONY: help tools run demo build deploy test browser proofs drill race lint check-runbook vulncheck clean need-go need-python

PYTHON ?= python3
ARGS   ?=
CLI    := .local/bin/paidonce
TOOLS  := .tools/.installed
CHECKOV := .tools/checkov/.installed
AWSCLI := .tools/aws/.installed

# Linters of Go run at these versions without being part of go.mod: the functions don't need them.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULNDB      := golang.org/x/vulndb

# go.mod names the toolchain with the latest security fixes; this lets Go fetch it where another is installed.
export GOTOOLCHAIN := auto
export SAM_CLI_TELEMETRY := 0

CFN_LINT := .tools/bin/cfn-lint --include-checks I --regions us-east-1 ap-south-1

# Checkov asks nobody whether there is a newer one, and does not take a template that it cannot read for a good one.
CHECKOV_ENV := CKV_SKIP_PACKAGE_UPDATE_CHECK=true CKV_PARSE_ERROR_FAIL=true

# How `sam build` compiles: static, small, and the same bytes in every folder (no RPC server of the retired go1.x
# runtime, no debug tables, no paths, no build id).
BUILD_ENV := CGO_ENABLED=0 GOFLAGS='-trimpath -tags=lambda.norpc -buildvcs=false "-ldflags=-s -w -buildid="'

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: need-go $(TOOLS) ## run everything locally, walk one order through it, keep serving until Ctrl-C
	@go build -o $(CLI) ./cmd/paidonce
	@exec $(CLI) dev --api-port 8780 --gateway-port 8781 --aws-port 8782 --shop-port 8783 $(ARGS)

demo: need-go $(TOOLS) ## the same walk without staying; exit status 0 only if every step ended as promised
	@go build -o $(CLI) ./cmd/paidonce
	@exec $(CLI) dev --demo $(ARGS)

test: lint $(AWSCLI) ## the linters, then all tests, on the local stack too
	go test ./...

browser: need-go $(TOOLS) ## drive the checkout page with a headless Chromium; needs one (ARGS=-update takes the picture in docs anew)
	go test -tags browser -count=1 -run Browser ./cmd/paidonce/dev $(ARGS)

proofs: need-go $(TOOLS) ## the exhaustive proofs among the tests, with the counts that they print
	go test -v -run 'Scenarios$$|Convergence|Random|AnEventsLife|Crash|Twenty|Table|Races|Fifty|TwoWorkers|Grows|ABurst|CallsPer' \
		./shared/payment ./shared/storetest ./shared/refund ./functions/orders ./functions/reconcile ./functions | grep -vE '^=== |^    --- PASS'

drill: need-go $(TOOLS) ## break everything at once on the local stack: 300 orders, and a table of what came of them
	go test -v -run Drill -count=1 ./functions

race: need-go $(TOOLS) $(AWSCLI) ## all tests under the race detector (needs a C compiler)
	go test -race ./...

lint: need-go $(TOOLS) $(CHECKOV) ## gofmt, go vet, staticcheck, and the template's linters
	@unformatted=$$(gofmt -l cmd functions shared); test -z "$$unformatted" || { echo "not formatted (gofmt -w): $$unformatted" >&2; exit 1; }
	go vet ./...
	go vet -tags browser ./cmd/...
	go run $(STATICCHECK) ./...
	go run $(STATICCHECK) -tags browser ./cmd/...
	.tools/bin/sam validate --lint --template template.yaml
	$(CFN_LINT) -- template.yaml
	sed 's/^    Default: AllAtOnce$$/    Default: Linear10PercentEvery1Minute/' template.yaml | $(CFN_LINT) # SAM looks at the default only
	$(CHECKOV_ENV) .tools/checkov/bin/checkov --config-file .checkov.yaml

check-runbook: need-go $(TOOLS) $(AWSCLI) ## alarms, dashboard and docs/runbook.md against each other, and the runbook's commands on a local stack
	go test -count=1 -run 'Runbook|Alarm|Dashboard' ./shared ./functions

vulncheck: need-go ## known vulnerabilities in what the code calls; the database comes as a Go module
	@mkdir -p .local/vulndb
	@module=$$(go mod download -json $(VULNDB)@latest | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); \
	test -e ".local/vulndb/$$(basename $$module)" || { \
		echo "indexing the vulnerability database (about a minute, once per version)" && \
		go run $(VULNDB)/cmd/indexdb@latest -vulns $$module/data/osv -out .local/vulndb && \
		touch ".local/vulndb/$$(basename $$module)"; }
	go run $(GOVULNCHECK) -db file://$(CURDIR)/.local/vulndb ./...

build: need-go $(TOOLS) ## build the functions for AWS, into .aws-sam
	$(BUILD_ENV) .tools/bin/sam build $(ARGS)

deploy: build ## deploy to your AWS account: make deploy ARGS='--config-env prod'
	.tools/bin/sam deploy $(ARGS)

clean: ## remove what make has made, the tools included
	rm -rf .aws-sam .local .tools

tools: $(TOOLS) $(CHECKOV) $(AWSCLI) ## install the local tools of requirements*.txt into .tools (run, demo and test do it too)

# In a virtual environment of the checkout, so that nothing else on the machine changes.
$(TOOLS): requirements.txt | need-go need-python
	@echo "installing the local tools of requirements.txt into .tools (a minute or two, once)"
	@$(PYTHON) -m venv --clear .tools || { echo "make: $(PYTHON) cannot make a virtual environment: install its venv module (Debian: apt install python3-venv)" >&2; exit 1; }
	@.tools/bin/pip install --disable-pip-version-check -r requirements.txt | \
		awk '/^Collecting/ {printf "  %s\n", $$2; fflush()} /^Installing/ {print "  installing"; fflush()}'
	@touch $@

# Below .tools, so that it goes when that is made anew.
$(CHECKOV): requirements-checkov.txt | $(TOOLS)
	@echo "installing checkov into .tools/checkov (a minute, once)"
	@$(PYTHON) -m venv --clear .tools/checkov
	@.tools/checkov/bin/pip install --quiet --disable-pip-version-check -r requirements-checkov.txt
	@touch $@

$(AWSCLI): requirements-aws.txt | $(TOOLS)
	@echo "installing the AWS CLI into .tools/aws (ten seconds, once)"
	@$(PYTHON) -m venv --clear .tools/aws
	@.tools/aws/bin/pip install --quiet --disable-pip-version-check -r requirements-aws.txt
	@touch $@

# Go fetches the toolchain that go.mod names by itself since 1.21.
need-go:
	@command -v go >/dev/null || { echo "make: Go is missing: install Go 1.26 or newer, see https://go.dev/doc/install" >&2; exit 1; }
	@[[ "$$(go env GOVERSION)" =~ ^go1\.([0-9]+) && $${BASH_REMATCH[1]} -ge 21 ]] || { \
		echo "make: $$(go version | cut -d ' ' -f 3) is too old: install Go 1.26 or newer, see https://go.dev/doc/install" >&2; exit 1; }

need-python:
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing: install Python 3.11 or newer, or name yours: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than 3.11: install a newer one, or name it: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
