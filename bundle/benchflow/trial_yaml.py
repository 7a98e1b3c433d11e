"""Rollout configs from YAML."""

from __future__ import annotations

from benchflow_core.evaluation.yaml import load_rollout as rollout_config_from_yaml

__all__ = ["rollout_config_from_yaml", "trial_config_from_yaml"]

trial_config_from_yaml = rollout_config_from_yaml
