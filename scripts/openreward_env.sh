#!/usr/bin/env bash
# Makes a Python environment with the pinned `openreward` and `ors-sdk` (120 MB) where it is not there yet, and prints its folder:
#   export BENCHFLOW_OPENREWARD_HOME="$(scripts/openreward_env.sh)"
# They stand apart from BenchFlow's own environment: `openreward` wants an older sse-starlette. Only tests need them.
set -euo pipefail
cd "$(dirname "$0")/.."
pins=plugins/adapters/ors/tests/requirements.txt
key=$(sha256sum "$pins" | cut -c1-12)
place=${BENCHFLOW_OPENREWARD_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/benchflow/openreward/$key}
if [ ! -e "$place/.installed" ]; then
  mkdir -p "$(dirname "$place")"
  exec 9>"$place.lock"
  flock 9
  if [ ! -e "$place/.installed" ]; then
    .venv/bin/uv venv --quiet --clear --python .venv/bin/python "$place"
    .venv/bin/uv pip install --quiet --compile-bytecode --python "$place/bin/python" -r "$pins"
    touch "$place/.installed"
  fi
fi
echo "$place"
