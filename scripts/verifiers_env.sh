#!/usr/bin/env bash
# Makes the Python environments of both generations of Verifiers (800 MB, pinned) where they are not there yet, and
# prints their folder:   export BENCHFLOW_VERIFIERS_HOME="$(scripts/verifiers_env.sh)"
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python -m benchflow_adapter_verifiers install
