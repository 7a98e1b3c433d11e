#!/bin/sh
# Usage: slugify.sh TITLE
[ "$#" -eq 1 ] || exit 2
LC_ALL=C
export LC_ALL
slug=$(printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-')
slug=${slug#-}
slug=${slug%-}
printf '%s\n' "${slug:-untitled}"
