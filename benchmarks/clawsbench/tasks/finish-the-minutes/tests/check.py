from world import rows, score


def check():
    text = {row["id"]: row["text"] for row in rows("gdoc", "SELECT id, text FROM documents")}
    before = {row["id"]: row["text"] for row in rows("gdoc", "SELECT id, text FROM documents", seed=True)}
    assert set(text) == set(before) and text["template"] == before["template"], "another document was changed"
    wanted = before["minutes-2026-03-02"].replace("[DATE]", "2 March 2026")
    wanted = wanted.replace("[ATTENDEES]", "Priya Nair, Tomasz Lewandowski, Grace Okafor")
    lines = [line.strip() for line in text["minutes-2026-03-02"].splitlines() if line.strip()]
    expected = [line.strip() for line in wanted.splitlines() if line.strip()] + ["Next meeting: 9 March 2026"]
    assert lines == expected, (lines, expected)


score(check)
