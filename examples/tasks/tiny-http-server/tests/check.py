"""Calls the server the agent left running."""

import random
import sys
import urllib.error
import urllib.request


def get(path):
    try:
        with urllib.request.urlopen("http://127.0.0.1:8080" + path, timeout=10) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, None


def main():
    a, b = random.randint(-1000, 1000), random.randint(1000, 9999)
    cases = [
        ("/health", (200, "ok")),
        ("/add?a=2&b=3", (200, "5")),
        (f"/add?a={a}&b={b}", (200, str(a + b))),
        ("/add?a=2", (400, None)),
        ("/add?a=two&b=3", (400, None)),
        ("/nothing-here", (404, None)),
    ]
    failed = 0
    for path, expected in cases:
        try:
            actual = get(path)
        except OSError as error:
            actual = (0, str(error))
        good = actual == expected
        failed += not good
        print("ok" if good else f"not ok: expected {expected}, got {actual}", path)
    return failed


sys.exit(min(main(), 1))
