#!/usr/bin/env bash
# Makes LiteLLM's own Python environment (730 MB, pinned) where it is not there yet, and prints its folder:
#   export BENCHFLOW_LITELLM_HOME="$(scripts/litellm_env.sh)"
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python -m benchflow_service_litellm install
