# make demo   set up .venv with the core and the default plugins, then run the main job
# make dev    every other package of the workspace and the development tools
# make test   the tests of every commit     make test-merge   what a merge needs besides     make test-all   every test there is
# make lint   ruff and mypy     make docs   build the site     make generated   refresh generated docs     make perf   benchmarks

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(BIN)/uv
PKGS   := $(patsubst %/pyproject.toml,%,$(wildcard plugins/*/*/pyproject.toml))
DEFAULT := bundle $(patsubst %/pyproject.toml,%,$(wildcard plugins/adapters/*/pyproject.toml)) $(patsubst %/pyproject.toml,%,$(wildcard plugins/agents/*/pyproject.toml)) plugins/commands/authoring plugins/commands/results plugins/commands/view plugins/drivers/scenes plugins/executors/processes $(patsubst %/pyproject.toml,%,$(wildcard plugins/features/*/pyproject.toml)) \
  plugins/gateways/relay plugins/libraries/acp plugins/libraries/boxkit plugins/libraries/layers plugins/libraries/wires plugins/sandboxes/docker plugins/sandboxes/local $(patsubst %/pyproject.toml,%,$(wildcard plugins/services/claw-*/pyproject.toml)) plugins/services/reviewer \
  plugins/sources/git plugins/verifiers/llm-judge plugins/verifiers/script
MANIFESTS := pyproject.toml bundle/pyproject.toml $(addsuffix /pyproject.toml,$(PKGS)) constraints.txt
export UV_LINK_MODE ?= copy
export UV_SYSTEM_CERTS ?= true
export VIRTUAL_ENV := $(abspath $(VENV))

# What is installed in place has no byte code of its own, and where Python may write none every start would compile anew.
COMPILE := $(BIN)/python -m compileall -q -x /templates/ benchflow_core bundle/benchflow $(wildcard plugins/*/*/benchflow_*)

# Most tests wait for boxes and programs: more workers than cores. What shares an engine, a proxy or a browser stays with one worker, and what takes longest starts first
# (tests/durations.json; xdist would begin with what has most tests). What PYTEST_ARGS says again, it says last.
PYTEST := $(BIN)/python -m pytest -n 5 --dist loadgroup --no-loadscope-reorder

.PHONY: demo dev test test-merge test-commit-and-merge test-all test-whole lint docs generated perf constraints clean

demo: $(VENV)/.default
	@$(COMPILE)
	@printf '\n== The reference solution, on every bundled task\n'
	@$(BIN)/bench eval create -t examples/tasks -a oracle --sandbox local
	@printf '\n== An ACP agent that plays a script, on one of them\n'
	@$(BIN)/bench eval create -t examples/tasks/fix-the-script -a scripted --sandbox local \
	  --agent-option script=examples/tasks/fix-the-script/scripted/solve.yaml
	@printf '\nNext: $(BIN)/bench eval list jobs     $(BIN)/bench plugins list     $(BIN)/bench tasks init my-task\n'

$(UV): scripts/uv.version
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r scripts/uv.version
	@touch $@

$(VENV)/.default: $(UV) $(MANIFESTS)
	$(UV) pip install --quiet --compile-bytecode -c constraints.txt -e . $(addprefix -e ,$(DEFAULT))
	@touch $@

$(VENV)/.dev: $(VENV)/.default
	$(UV) pip install --quiet --compile-bytecode -c constraints.txt --group dev -e '.[testing]' -e bundle $(addprefix -e ,$(PKGS)) -e "plugins/testing/model[clients]" -e "plugins/testing/clouds[daytona,e2b,modal]"
	@touch $@

dev: $(VENV)/.dev
	@$(COMPILE)

# Three tiers, by mark. LiteLLM's tests need an environment of their own, so they are the merge's.
test: dev
	$(PYTEST) -m "not merge and not litellm and not nightly" $(PYTEST_ARGS)

test-merge: dev
	$(PYTEST) -m "(merge or litellm) and not nightly" $(PYTEST_ARGS)

# Both at once for CI: what the renamed suite runs (tests/e2e/test_renamed.py) is not run under its own names as well.
test-commit-and-merge: dev
	$(PYTEST) -m "not renamed_too and not nightly" $(PYTEST_ARGS)

test-all: dev
	$(PYTEST) -m "" $(PYTEST_ARGS)

test-whole: test-all

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: dev
	$(BIN)/mkdocs build --strict --quiet

generated: dev
	$(BIN)/python scripts/generate_docs.py
	$(BIN)/python scripts/hook_reference.py
	$(BIN)/python scripts/sandbox_docs.py

perf: dev
	$(BIN)/python -m benchmarks.perf

constraints: $(UV)
	$(UV) pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --group dev --all-extras \
	  $(UPGRADE) pyproject.toml $(addsuffix /pyproject.toml,$(PKGS)) $(addprefix --no-emit-package ,benchflow-core benchflow-gateway-relay benchflow-acp benchflow-boxkit benchflow-layers benchflow-wires benchflow-claw-kit) -o constraints.txt

clean:
	rm -rf $(VENV) dist site
