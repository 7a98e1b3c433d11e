#!/bin/sh
reward=0
[ "$(cat /app/line.txt 2>/dev/null)" = "NEVER SAY" ] && reward=1
echo "$reward" > /logs/verifier/reward.txt
