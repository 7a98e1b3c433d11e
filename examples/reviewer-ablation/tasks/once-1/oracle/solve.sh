#!/bin/sh
echo "red blue" > /app/line.txt
