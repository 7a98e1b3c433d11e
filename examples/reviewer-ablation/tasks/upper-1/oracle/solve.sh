#!/bin/sh
echo "RED GREEN" > /app/line.txt
