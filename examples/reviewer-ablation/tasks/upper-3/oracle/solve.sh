#!/bin/sh
echo "NEVER SAY" > /app/line.txt
