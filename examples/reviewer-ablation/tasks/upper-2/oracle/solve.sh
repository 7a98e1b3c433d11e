#!/bin/sh
echo "UP AND AWAY" > /app/line.txt
