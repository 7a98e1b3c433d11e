#!/bin/sh
cd /app && python3 - <<'END'
import json
from pathlib import Path

rows = [json.loads(p.read_text()) for p in sorted(Path("jobs/nightly").glob("*/result.json"))]


def names(wanted):
    return sorted(row["rollout_name"] for row in rows if wanted(row))


rewards = [(row["rewards"] or {}).get("reward") for row in rows]
report = {
    "planned": len(rows),
    "scored": sum(reward is not None for reward in rewards),
    "passed": sum(reward == 1 for reward in rewards),
    "unscored": names(lambda row: row["rewards"] is None),
    "timed_out": names(lambda row: (row["error_info"] or {}).get("code") == "agent_timeout"),
    "not_comparable": names(lambda row: row["image_fidelity"] != "exact"),
    "total_tokens": sum(row["agent_result"]["total_tokens"] for row in rows),
}
Path("report.json").write_text(json.dumps(report))
END
