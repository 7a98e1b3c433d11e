#!/bin/sh
set -e
cp "$(dirname "$0")/slugify.sh" /app/slugify.sh
