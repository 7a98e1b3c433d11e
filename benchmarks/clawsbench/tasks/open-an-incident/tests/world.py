import sqlite3
import traceback


def rows(service, query, *values, seed=False):
    """From the state that the world came to, or that it began with."""
    connection = sqlite3.connect(f"/logs/world/{service}{'.seed' if seed else ''}.db")
    connection.row_factory = sqlite3.Row
    return [dict(row) for row in connection.execute(query, values)]


def score(check):
    try:
        check()
        reward = 1
    except AssertionError:
        traceback.print_exc()
        reward = 0
    with open("/logs/verifier/reward.txt", "w") as file:
        file.write(str(reward))
