#!/bin/sh
reward=0
if [ -f /app/sum.txt ] && [ "$(cat /app/sum.txt)" = 166 ]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
