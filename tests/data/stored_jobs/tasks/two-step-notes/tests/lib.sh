# Shared by the tests of both steps.

same() {
    if [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; then
        echo "ok: $1"
    else
        echo "not ok: $1 should hold:"
        echo "$2"
        failed=1
    fi
}

finish() {
    if [ -z "$failed" ]; then
        echo 1 > /logs/verifier/reward.txt
    else
        echo 0 > /logs/verifier/reward.txt
    fi
}
