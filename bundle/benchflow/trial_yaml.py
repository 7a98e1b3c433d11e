"""What a YAML config describes: one rollout, or a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation import Evaluation
from benchflow_core.evaluation.yaml import load_job, open_job
from benchflow_core.rollout import RolloutConfig

__all__ = ["rollout_config_from_yaml", "trial_config_from_yaml"]


def rollout_config_from_yaml(path: str | Path) -> RolloutConfig | Evaluation:
    """Read a YAML config. A task gives the config of one rollout; a folder of tasks or a dataset gives a job.

    `bf.run()` takes both. What schedules a job, such as `concurrency`, means nothing for one rollout and is left aside,
    as the older documents do. Blocking where tasks have to be fetched.
    """
    spec = load_job(path)
    chosen = spec.tasks()
    if not chosen.is_one_task:
        return open_job(spec, Evaluation, chosen=chosen)
    if spec.config.matrix or spec.config.trials != 1:
        word = "matrix" if spec.config.matrix else "trials"
        raise ConfigurationError(
            f"{path}: '{word}' makes several rollouts of the task {chosen.where}, and this is for one.",
            remedy="Use Evaluation.from_yaml(), or name a folder of tasks.",
        )
    where: dict[str, Any] = {"jobs_dir": spec.jobs_dir, "job_name": spec.job_name, "rollout_name": spec.rollout_name}
    return chosen.stamp(spec.config).rollout(chosen.paths[0], **where)


trial_config_from_yaml = rollout_config_from_yaml
