from world import rows, score


def check():
    (question,) = rows("slack", "SELECT * FROM messages WHERE text LIKE 'Which shade%'")
    known = {(m["channel"], m["ts"]) for m in rows("slack", "SELECT channel, ts FROM messages", seed=True)}
    new = [m for m in rows("slack", "SELECT * FROM messages") if (m["channel"], m["ts"]) not in known]
    assert len(new) == 1, f"one message was to be posted, not {len(new)}"
    (answer,) = new
    assert (answer["channel"], answer["thread_ts"]) == (question["channel"], question["ts"]), "not in the thread"
    assert "#1d4e89" in answer["text"].lower() and "#2f6fb0" not in answer["text"].lower(), answer["text"]
    marks = rows("slack", "SELECT channel, ts, name FROM reactions")
    wanted = {"channel": question["channel"], "ts": question["ts"], "name": "white_check_mark"}
    assert marks == [wanted], marks


score(check)
