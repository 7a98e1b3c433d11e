#!/bin/bash
# Full reward for the right sum, read from the service itself.
reward=0
exec 3<>/dev/tcp/inventory/8000
printf 'GET /stock.csv HTTP/1.0\r\n\r\n' >&3
expected=$(awk -F, 'NF == 2 && $2 ~ /^[0-9]+$/ { sum += $2 } END { print sum }' <&3)
if [ -n "$expected" ] && [ "$(cat /app/total.txt 2>/dev/null)" = "$expected" ]; then reward=1; fi
echo "$reward" > /logs/verifier/reward.txt
