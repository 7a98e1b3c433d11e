#!/bin/sh
set -e
: > /app/report.txt
for kind in done idea todo; do
    file=/app/notes/$kind.txt
    sed -n "s/^$kind: //p" /app/late.txt >> "$file"
    LC_ALL=C sort -o "$file" "$file"
    echo "$kind: $(wc -l < "$file" | tr -d ' ')" >> /app/report.txt
done
