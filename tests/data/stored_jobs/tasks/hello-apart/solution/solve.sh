#!/bin/sh
set -e
echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt
