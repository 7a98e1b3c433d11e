"""What ProgramBench itself makes of test reports: reads cases from stdin, writes their scores. Runs with its package on
the path (`PYTHONPATH`), apart from ours."""

from __future__ import annotations

import json
import sys

from programbench.eval.eval import EvaluationResult, Evaluator


def score(branches: dict, outputs: dict, error: str | None) -> float:
    """ProgramBench scores again what an earlier evaluation logged; here the log holds our reports."""
    log = [
        {"step": "results_read", "branch": branch, "returncode": 0, "output": text}
        for branch, text in outputs.items()
        if text is not None
    ]
    ignored = {f"{branch}/{name}" for branch, names in branches.items() for name in names["ignored"]}
    try:
        result = Evaluator(
            tests_branches=list(branches),
            tests_by_branch={branch: names["tests"] for branch, names in branches.items()},
            ignored_tests=ignored,
            from_existing=EvaluationResult(test_branches=list(branches), log=log, error_code=error),
        ).run()
    except Exception as failed:  # ProgramBench's batch evaluation gives 0 for any
        print(f"ProgramBench gives 0: {failed}", file=sys.stderr)
        return 0.0
    return result.without_ignored(ignored).score


if __name__ == "__main__":
    json.dump([score(**case) for case in json.load(sys.stdin)], sys.stdout)
