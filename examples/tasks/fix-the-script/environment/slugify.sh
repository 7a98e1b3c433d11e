#!/bin/sh
# Usage: slugify.sh TITLE
title=$1
echo $title | tr 'A-Z' 'a-z' | tr -c 'a-z0-9\n' '-'
