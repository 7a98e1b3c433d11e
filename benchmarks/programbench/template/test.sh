#!/bin/sh
exec python3 /tests/score.py
