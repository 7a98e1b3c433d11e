"""The cases of a skill's `evals/evals.json` as tasks."""
