#!/bin/sh
echo "red green blue" > /app/line.txt
