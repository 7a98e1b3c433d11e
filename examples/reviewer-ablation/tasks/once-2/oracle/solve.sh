#!/bin/sh
echo "one two three" > /app/line.txt
