from world import rows, score


def check():
    made = rows("slack", "SELECT * FROM channels WHERE name = 'inc-payments'")
    assert len(made) == 1 and not made[0]["is_archived"], "there is no channel inc-payments"
    assert made[0]["topic"] == "Card payments fail since 08:40", made[0]["topic"]
    query = "SELECT u.name FROM members m JOIN users u ON u.id = m.user WHERE m.channel = ? AND u.is_bot = 0"
    members = {row["name"] for row in rows("slack", query, made[0]["id"])}
    assert {"priya", "tomasz"} <= members and "grace" not in members, members
    posted = "SELECT text FROM messages WHERE channel = ? AND subtype IS NULL"
    texts = [row["text"] for row in rows("slack", posted, made[0]["id"])]
    assert len(texts) == 1 and "E4471" in texts[0], texts
    (checkout,) = rows("slack", "SELECT id FROM channels WHERE name = 'checkout'")
    everything = "SELECT ts, text FROM messages WHERE channel = ? ORDER BY ts"
    assert rows("slack", everything, checkout["id"]) == rows("slack", everything, checkout["id"], seed=True), (
        "#checkout changed"
    )


score(check)
