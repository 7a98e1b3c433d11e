#!/bin/sh
# Two metrics of their own, and a score that weighs the list more than the number.
here=$(dirname "$0")
top=0
vocabulary=0
if cmp "$here/top.csv" /app/top.csv; then
    top=1
fi
if [ "$(tr -d ' \n' < /app/vocabulary.txt)" = "$(cat "$here/vocabulary.txt")" ]; then
    vocabulary=1
fi
reward=$(awk "BEGIN { print 0.7 * $top + 0.3 * $vocabulary }")
echo "{\"reward\": $reward, \"top\": $top, \"vocabulary\": $vocabulary}" > /logs/verifier/reward.json
