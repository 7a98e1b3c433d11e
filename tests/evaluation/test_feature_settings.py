"""Settings of features: keys of job files, options, keywords and what is written down, like the core's own."""

from __future__ import annotations

from typing import Annotated

import benchflow as bf
import click
import pytest
from click.testing import CliRunner

from benchflow_core.contracts import Alias, Option, Secret, Settings, Table
from benchflow_core.errors import ConfigurationError, PluginError
from benchflow_core.evaluation import EvaluationConfig
from benchflow_core.settings import compose
from benchflow_core.settings.job_file import job_schema, read_settings
from benchflow_core.settings.models import RolloutConfig, job_keys
from benchflow_core.settings.options import given_settings, setting_options
from benchflow_core.settings.written import dump, read, recorded


class ClockSettings(Settings):
    """What a feature of a third party brings."""

    clock_speed: Annotated[float, Option("--clock-speed", metavar="X"), Alias("speed")] = 1.0
    """How fast the clock runs."""
    clock_env: Annotated[Table, Option(metavar="K=V"), Secret()] = {}  # noqa: RUF012
    """A variable of the clock."""


@pytest.fixture
def clock(monkeypatch):
    """The feature is installed, as far as settings know."""
    monkeypatch.setattr(compose, "_of_features", lambda plugins: (("feature 'clock'", ClockSettings),))


def test_they_are_keys_of_job_files_with_their_mistakes(clock, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("tasks_dir: t\nspeed: 2.5\nclock_env: {A: 1}\n")
    _, config = read_settings(path, (), {})
    assert (config.clock_speed, config.clock_env) == (2.5, {"A": "1"})
    rollout = config.rollout(tmp_path)
    assert rollout.clock_speed == 2.5 and isinstance(rollout, RolloutConfig)
    path.write_text("tasks_dir: t\nclock_sped: 2\n")
    with pytest.raises(ConfigurationError, match=r"line 2: unknown field 'clock_sped', did you mean 'clock_speed'\?"):
        read_settings(path, (), {})
    assert job_schema()["properties"]["clock_speed"]["description"] == "How fast the clock runs."


def test_they_are_options_and_keywords(clock):
    @click.command()
    @setting_options(job_keys(), lambda what: lambda ctx, param, text: [])
    @click.pass_context
    def command(ctx, /, **given):
        click.echo(given_settings(job_keys(), ctx))

    said = CliRunner().invoke(command, ["--clock-speed", "3", "--clock-env", "A=b", "--agent", "x,y"])
    assert said.output.strip() == "{'agent': ['x', 'y'], 'clock_speed': 3.0, 'clock_env': {'A': 'b'}}"
    assert "How fast the clock runs." in CliRunner().invoke(command, ["--help"]).output
    assert bf.RuntimeConfig(clock_speed=2.0).clock_speed == 2.0
    with pytest.raises(ConfigurationError, match="RolloutConfig: unknown field 'clok_speed', did you mean"):
        RolloutConfig("t", clok_speed=2.0)


def test_they_are_written_without_secrets_and_read_again(clock):
    config = EvaluationConfig(clock_speed=4.0, clock_env={"API_KEY": "hush", "PLAIN": "1"})
    back = read(EvaluationConfig, dump(config), {"API_KEY": "again"}, "job.json")
    assert (back.clock_speed, back.clock_env) == (4.0, {"API_KEY": "again", "PLAIN": "1"})
    assert "hush" not in str(dump(config))
    found = recorded(RolloutConfig("t", clock_env={"API_KEY": "hush", "PLAIN": "1"}))
    assert found["clock_speed"] == 1.0 and found["clock_env"] == {"PLAIN": "1"}


def test_two_that_claim_one_key_are_both_named(monkeypatch):
    class Other(Settings):
        clock_speed: int = 1

    both = (("feature 'clock' of a 1.0", ClockSettings), ("feature 'watch' of b 2.0", Other))
    monkeypatch.setattr(compose, "_of_features", lambda plugins: both)
    with pytest.raises(PluginError, match=r"'watch' of b 2.0 and feature 'clock' of a 1.0 both have .* 'clock_speed'"):
        RolloutConfig("t")


def test_a_feature_cannot_take_a_key_of_the_core(monkeypatch):
    class Greedy(Settings):
        timeout: float = 1.0

    monkeypatch.setattr(compose, "_of_features", lambda plugins: (("feature 'greedy'", Greedy),))
    with pytest.raises(PluginError, match="feature 'greedy' and the core both have a setting 'timeout'"):
        RolloutConfig("t")
