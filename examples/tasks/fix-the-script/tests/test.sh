#!/bin/sh
# One share of the reward for every case that gives exactly the expected line and exit status 0.
total=0
passed=0

expect() {
    total=$((total + 1))
    actual=$(timeout 5 sh /app/slugify.sh "$1" 2>/dev/null; echo "status $?")
    if [ "$actual" = "$2
status 0" ]; then
        passed=$((passed + 1))
        echo "ok: $1"
    else
        echo "not ok: $1: expected $2, got: $actual"
    fi
}

expect_usage() {
    total=$((total + 1))
    actual=$(timeout 5 sh /app/slugify.sh "$@" 2>/dev/null; echo "status $?")
    if [ "$actual" = "status 2" ]; then
        passed=$((passed + 1))
        echo "ok: $# arguments"
    else
        echo "not ok: $# arguments: got: $actual"
    fi
}

expect 'plain' 'plain'
expect 'Hello, World!' 'hello-world'
expect '  spaces   everywhere  ' 'spaces-everywhere'
expect 'C++ & Rust: 2 languages' 'c-rust-2-languages'
expect '-n' 'n'
expect 'a*b' 'a-b'
expect '!!!' 'untitled'
expect 'back\nslash' 'back-nslash'
expect_usage
expect_usage one two

awk "BEGIN { printf \"%.4f\\n\", $passed / $total }" > /logs/verifier/reward.txt
