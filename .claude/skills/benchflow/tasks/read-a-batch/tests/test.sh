#!/bin/sh
reward=0
if python3 -B "$(dirname "$0")/check.py"; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
