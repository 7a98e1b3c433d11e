#!/bin/sh
set -e
export LC_ALL=C
words=$(mktemp)
cat /app/texts/*.txt | tr 'A-Z' 'a-z' | tr -cs 'a-z' '\n' | sed '/^$/d' | sort | uniq -c > "$words"
sort -k1,1nr -k2,2 "$words" | head -n 10 | awk '{ print $2 "," $1 }' > /app/top.csv
wc -l < "$words" | tr -d ' ' > /app/vocabulary.txt
rm "$words"
