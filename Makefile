# `make up` is the entry point for users, `make test` the one for contributors. All other targets are parts of these
# two.

CARGO ?= cargo
# The profile of `make up`, which builds quickly. `make release` builds the fastest program.
PROFILE ?= quick
ARENAD = target/$(PROFILE)/arenad

.PHONY: lint check-texts simulation soak fuzz up demo down test test-differential test-harnesses check bench build release wheel deb schemas docs browser prepare help

help: ## Say what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

prepare:
	@scripts/toolchain.sh
	@scripts/host-tools.sh
	@scripts/engine.sh
	@scripts/base-image.sh

build: ## Build arenad as `make up` does: quick to build, target/quick/arenad
	@scripts/toolchain.sh
	$(CARGO) build --profile $(PROFILE) --locked

release: ## Build the fastest arenad, which takes longer: target/release/arenad
	@scripts/toolchain.sh
	$(CARGO) build --release --locked

wheel: release ## Build a Python wheel with program, environments and client: target/dist
	@scripts/wheel.py

deb: release ## Build a Debian package with a systemd unit: target/dist
	@scripts/deb.sh

up: ## Build arenad and the images, bring the mini environment up
	@scripts/toolchain.sh
	@PROFILE=$(PROFILE) scripts/up.sh

demo: up ## Let a scripted agent do three tasks on `mini`, and record it: DEMO=--headed shows the browser
	@scripts/demo.sh $(DEMO)

down: ## Take everything down that `make up` brought up
	@if [ -x $(ARENAD) ]; then $(ARENAD) down; else echo "nothing was built, so nothing is up"; fi

check: lint check-texts ## Formatting, lints, schemas, documents: all that needs no Docker

lint:
	@scripts/toolchain.sh
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

check-texts:
	@scripts/toolchain.sh
	$(CARGO) fmt --all --check
	scripts/world.py --check
	scripts/check-schemas.sh
	scripts/check-docs.sh
	scripts/check-english.sh
	scripts/simulation-mutants.sh --check

docs: ## Write the generated pages of the documents anew
	scripts/check-docs.sh --write

schemas: ## Write the JSON Schemas of the definition files anew
	scripts/check-schemas.sh --write

test: ## Check the code and run every test, real engine included
	@scripts/toolchain.sh
	@scripts/test-all.sh

test-differential: ## Compare the evaluators with the benchmarks' own code, from PyPI
	@scripts/toolchain.sh
	scripts/differential.sh

test-harnesses: prepare ## Run the harnesses themselves, from PyPI, with scripted agents on sites of `mini`
	@scripts/toolchain.sh
	@scripts/test-tools.sh
	scripts/test-harnesses.sh

simulation: ## Look for schedules that break a promise: SCHEDULES=1000 of them, new ones each time
	ARENAD_SIM_BASE=random ARENAD_SIM_SCHEDULES=$${SCHEDULES:-1000} scripts/simulation.sh

soak: prepare ## Reset real sites RESETS=2000 times under load, with kills and pauses, and compare each time
	@scripts/test-tools.sh
	seed=$${SEED:-$$(date +%s)} && echo "soak: SEED=$$seed" && \
	ARENAD_RESETS=$${RESETS:-2000} ARENAD_RESETS_SEED=$$seed $(CARGO) test --locked --test sites resets:: -- --nocapture

fuzz: prepare ## Look for inputs that break a promise, EACH=300 seconds for each parser, new ones each time
	ARENAD_FUZZ_SECONDS=$${EACH:-300} scripts/fuzz.sh

browser: prepare ## Build the browser's image, for hosts without Chromium
	scripts/browser-image.sh

bench: prepare ## Measure, against what people do today, in the same run
	@scripts/test-tools.sh
	$(CARGO) build --release --locked
	scripts/bench.sh
