#!/bin/sh
# Builds the source in the way of its language; the program is the largest one that the build made.
set -eu
rm -f executable
touch .before-the-build
if [ -f Cargo.toml ]; then
    cargo build --release --offline
elif [ -f go.mod ]; then
    go build -o executable . || go build -o executable ./cmd/...
elif [ -f CMakeLists.txt ]; then
    cmake -S . -B build -DCMAKE_BUILD_TYPE=Release
    cmake --build build --parallel
else
    [ -f configure ] || [ ! -f configure.ac ] || autoreconf -fi
    [ ! -f configure ] || ./configure
    make
fi
if [ ! -f executable ]; then
    largest=$(find . -path ./.git -prune -o -path '*/deps' -prune -o -type f -perm -u+x -newer .before-the-build \
        ! -name '*.so*' ! -name '*.sh' -printf '%s %p\n' | sort -rn | head -n 1 | cut -d ' ' -f 2-)
    cp "$largest" executable
fi
