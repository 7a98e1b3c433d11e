#!/bin/sh
# Full reward for exactly the expected line.
reward=0
if [ -f /app/hello.txt ] && [ "$(cat /app/hello.txt)" = 'Hello, Ada!' ] && [ "$(wc -l < /app/hello.txt)" -eq 1 ]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
