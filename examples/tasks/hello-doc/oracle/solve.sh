#!/bin/sh
set -e
awk '{ sum += $1 } END { print sum }' /app/numbers.txt > /app/sum.txt
