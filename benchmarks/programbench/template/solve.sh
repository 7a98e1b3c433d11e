#!/bin/sh
# The original source at its commit. It comes with the task if that was converted with --sources.
set -eu
cd /workspace
if [ -f /solution/source.tar.gz ]; then
    tar -xzf /solution/source.tar.gz
else
    git init -q .
    git fetch -q --depth 1 https://github.com/@REPOSITORY@ @COMMIT@ || {
        echo "no source of @REPOSITORY@ at @COMMIT@: convert the task with --sources" >&2
        exit 1
    }
    git checkout -qf FETCH_HEAD
    git submodule --quiet update --init --depth 1
    # What the build would download must lie here: it is judged without a network.
    if [ -f Cargo.toml ]; then
        mkdir -p .cargo
        cargo vendor --quiet >>.cargo/config.toml
    elif [ -f go.mod ]; then
        go mod vendor
    fi
fi
[ -f compile.sh ] || cp /solution/compile.sh compile.sh
chmod +x compile.sh
