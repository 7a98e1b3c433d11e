#!/bin/sh
set -e
mkdir -p /app/notes
for kind in todo idea done; do
    sed -n "s/^$kind: //p" /app/inbox.txt | LC_ALL=C sort > "/app/notes/$kind.txt"
done
