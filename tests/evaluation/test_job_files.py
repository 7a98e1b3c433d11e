"""Job files: the documents' own, mistakes by file and line, and what the command line says over them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from benchflow.trial_yaml import trial_config_from_yaml

from benchflow_core.contracts import Internal
from benchflow_core.errors import ConfigurationError, TaskError, UsageError
from benchflow_core.evaluation import Evaluation
from benchflow_core.evaluation.yaml import read_job
from benchflow_core.rollout import RolloutConfig
from benchflow_core.settings.compose import marked
from benchflow_core.settings.job_file import job_schema
from benchflow_core.settings.matrix import Choice
from benchflow_core.settings.models import JobSettings as EvaluationConfig

EXAMPLES = Path(__file__).parents[2] / "examples" / "tasks"


@pytest.fixture
def read(tmp_path):
    def run(text, overrides=(), **given):
        path = tmp_path / "job.yaml"
        path.write_text(text)
        return read_job(path, overrides=overrides, given=given)

    return run


SCENES = """
task_dir: .ref/terminal-bench-2
environment: daytona
concurrency: 64

scenes:
  - name: review-loop
    roles:
      - name: coder
        agent: gemini
        model: gemini-3.1-flash-lite-preview
      - name: reviewer
        agent: claude-agent-acp
        model: claude-sonnet-4-6
    turns:
      - role: coder
      - role: reviewer
        prompt: |
          Write: {"to": "coder", "content": "Your specific feedback here."}
      - role: coder
        prompt: "Read the reviewer's feedback and revise your solution."
"""
SOURCE = """
source:
  repo: benchflow-ai/skillsbench   # GitHub repo (org/repo)
  path: tasks                      # subpath within the repo
  ref: main                        # branch/tag (optional)
agent: claude-agent-acp            # agent from registry
model: zai/glm-5.1                 # model ID
environment: daytona               # sandbox
concurrency: 8                     # parallel tasks
"""


def test_files_of_the_documents(read):
    scenes = read(SCENES)
    assert scenes.choice.tasks_dir == Path(".ref/terminal-bench-2")
    assert scenes.config.sandbox == "daytona" and scenes.config.concurrency == 64
    [scene] = scenes.config.scenes
    assert [role.agent for role in scene.roles] == ["gemini", "claude-agent-acp"]
    assert [turn.prompt is None for turn in scene.turns] == [True, False, False]
    source = read(SOURCE)
    assert (source.choice.source.repo, source.choice.source.path, source.choice.source.ref) == (
        "benchflow-ai/skillsbench",
        "tasks",
        "main",
    )
    assert source.config.model == "zai/glm-5.1"
    learning = read("source:\n  repo: benchflow-ai/skillsbench\n  path: tasks\njob_mode: sequential-shared\n")
    assert learning.config.job_mode == "sequential-shared"
    world = read("tasks_dir: t\nenvironment_manifest: benchmarks/clawsbench/environment.toml\nservices:\n  - gmail\n")
    assert world.config.services == ["gmail"] and world.config.environment_manifest.endswith("environment.toml")
    rest = read(
        "tasks_dir: ./my-local-tasks\nsandbox_setup_timeout: 300\nskills_dir: s\nagent_env: {A: b}\nmax_retries: 5\n"
    )
    assert rest.config.retry.max_retries == 5 and rest.config.sandbox_setup_timeout == 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks_dir: x\nagnet: oracle\n", r"job.yaml, line 2: unknown field 'agnet', did you mean 'agent'\?"),
        ("tasks_dir: x\nmatrix:\n  modles: [a]\n", "line 3: unknown field 'modles', did you mean 'models'"),
        (
            "tasks_dir: x\nmatrix:\n  models:\n    a:\n      modl: b\n",
            "line 5: unknown field 'modl', did you mean 'model'",
        ),
        ("source:\n  repo: a/b\n  brach: c\n", "line 3: unknown field 'brach'"),
        ("source:\n  path: c\n", "line 1: a source needs 'repo'"),
        ("tasks_dir: x\nretry:\n  max_retry: 1\n", "line 3: unknown field 'max_retry', did you mean 'max_retries'"),
        ("tasks_dir: x\nscenes:\n  - turns:\n      - rle: a\n", "line 4: unknown field 'rle', did you mean 'role'"),
        ("tasks_dir: x\nconcurrency: four\n", "line 2: 'concurrency' must be a whole number, not 'four'"),
        ("tasks_dir: x\nverify: 1\n", "line 2: 'verify' must be true or false, not 1"),
        ("tasks_dir: x\ntrials: true\n", "line 2: 'trials' must be a whole number, not True"),
        ("tasks_dir: x\nagent: [a, b]\n", "line 2: 'agent' must be text"),
        ("tasks_dir: x\nscenes:\n  a: b\n", "line 2: 'scenes' must be a list"),
        ("tasks_dir: x\nmatrix:\n  agents: 5\n", "line 3: 'agents' must be a list or a mapping, not 5"),
        ("tasks_dir: x\npermissions: maybe\n", "line 2: 'permissions' must be 'allow', 'reject' or 'ask', not 'maybe'"),
        ("tasks_dir: x\nagent_env:\n  A: ${NOT_SET_ANYWHERE}\n", "line 3: the variable 'NOT_SET_ANYWHERE' is not set"),
        ("tasks_dir: x\nenvironment: a\nsandbox: b\n", "line 3: 'environment' and 'sandbox' mean the same"),
        ("tasks_dir: x\nmax_retries: 1\nretry: {max_retries: 2}\n", "line 2: 'max_retries' and 'retry' both"),
        ("tasks_dir: x\nloop_strategy: a:b\n", "line 2: driver 'a:b' is not NAME:KEY=VALUE"),
        ("- a\n", "expected a mapping of settings"),
        ("pre_agent_hooks: []\n", "unknown field 'pre_agent_hooks'"),
    ],
)
def test_mistakes_are_told_with_file_and_line(read, text, message):
    with pytest.raises(ConfigurationError, match=message):
        read(text)


def test_shorter_ways_to_write_a_thing(read, monkeypatch):
    monkeypatch.setenv("LEVEL", "9")
    spec = read(
        "source: a/b\nprompts: Do it.\ninclude: x*\nagent_idle_timeout_sec: none\nloop_strategy: verify-retry:k=3\n"
        "agent_env: {A: 1, B: false, C: 'l${LEVEL}', D: '${NONE_SUCH:-d}', E: $LEVEL}\n"
    )
    config = spec.config
    assert spec.choice.source.repo == "a/b" and config.prompts == ["Do it."] and config.include_tasks == ["x*"]
    assert config.agent_idle_timeout is None
    assert (config.driver, config.driver_params) == ("verify-retry", {"k": "3"})
    assert config.agent_env == {"A": "1", "B": "false", "C": "l9", "D": "d", "E": "9"}
    assert read("tasks_dir: x\nloop_strategy: {strategy: s, params: {k: 2}}\n").config.driver_params == {"k": 2}
    assert read("tasks_dir: x\nloop_strategy: single-shot\n").config.driver == "single-shot"
    assert read("tasks_dir: x\nusage_tracking: {mode: required}\n").config.usage_tracking == "required"
    assert read("tasks_dir: x\nsandbox_locked_paths: /secret\n").config.sandbox_locked_paths == ["/secret"]


def test_options_win_over_overrides_and_those_over_the_file(read):
    text = "tasks_dir: x\nagent: a\nmodel: m\ntrials: 2\nagent_env: {A: '1', B: '1'}\n"
    spec = read(
        text,
        ["trials=3", "model=n", "agent_env.B=2", "retry.max_wait_sec=5"],
        model=["o"],
        agent_env={"C": "$HOME"},
    )
    config = spec.config
    assert (config.agent, config.model, config.trials) == ("a", "o", 3)
    assert config.agent_env == {"A": "1", "B": "2", "C": "$HOME"}
    assert config.retry.max_wait_sec == 5.0


def test_overrides_reach_into_lists_and_come_as_mappings(read, tmp_path):
    over = tmp_path / "over.yaml"
    over.write_text("trials: 4\nsource: {ref: v2}\n")
    text = "source: {repo: a/b, path: p}\nscenes:\n  - roles:\n      - {name: r, agent: a}\n"
    spec = read(text, [f"@{over}", "scenes.0.roles.0.agent=z", '{"timeout": 5}'])
    assert spec.choice.source.ref == "v2" and spec.choice.source.path == "p"
    assert spec.config.trials == 4 and spec.config.timeout == 5
    assert spec.config.scenes[0].roles[0].agent == "z"
    with pytest.raises(UsageError, match="there is no '7' there"):
        read(text, ["scenes.7.name=x"])
    with pytest.raises(UsageError, match="expected NAME=VALUE"):
        read(text, ["trials"])
    with pytest.raises(
        ConfigurationError, match="--config-override trils: unknown field 'trils', did you mean 'trials'"
    ):
        read(text, ["trils=1"])
    with pytest.raises(ConfigurationError, match="--config-override trials: 'trials' must be a whole number"):
        read(text, ["trials=many"])


def test_one_source_of_tasks_replaces_the_files_own(read):
    text = "source: {repo: a/b, path: p}\n"
    assert read(text, tasks_dir="t").choice.source is None
    assert read(text, source={"ref": "v1"}).choice.source.ref == "v1"
    assert read(text, source={"ref": "v1"}).choice.source.repo == "a/b"
    assert read(text, dataset="d@1").choice.source is None
    with pytest.raises(UsageError, match="both say which tasks"):
        read("tasks_dir: t\ndataset: d@1\n").tasks({})
    with pytest.raises(UsageError, match="no task was named"):
        read("agent: a\n").tasks({})
    with pytest.raises(ConfigurationError, match="without --source-repo"):
        read_job(None, given={"source": {"ref": "x"}})


def test_axes_of_the_command_line(read):
    text = "tasks_dir: t\nmatrix: {agents: [a, b], models: {x: m, y: {model: n, agent_env: {K: v}}}}\n"
    spec = read(text)
    assert [arm.name for arm in spec.config.arms()] == ["a+x", "a+y", "b+x", "b+y"]
    assert isinstance(spec.config.matrix.models["y"], Choice)
    one = read(text, agent=["z"]).config
    assert one.agent == "z" and [arm.name for arm in one.arms()] == ["x", "y"]
    two = read("tasks_dir: t\nagent: a\n", agent=["b", "c"]).config
    assert two.agent is None and [arm.name for arm in two.arms()] == ["b", "c"]
    plain = read_job(None, given={"tasks_dir": "t", "agent": ["b", "c"], "model": ["m"]}).config
    assert plain.model == "m" and [arm.name for arm in plain.arms()] == ["b", "c"]


def test_an_option_that_scenes_would_ignore_is_refused(read):
    with pytest.raises(UsageError, match="--agent would do nothing"):
        read(SCENES, agent=["x"])


def test_the_schema_knows_every_setting_and_accepts_what_the_reader_does(read):
    schema = job_schema()
    assert schema["additionalProperties"] is False
    assert {"agent", "environment", "task_dir", "source", "dataset", "matrix", "scenes", "max_cost"} <= set(
        schema["properties"]
    )
    assert schema["properties"]["sandbox"]["description"].startswith("Which sandbox")
    assert "pre_agent_hooks" not in schema["properties"] and "source_provenance" not in schema["properties"]
    assert json.loads(json.dumps(schema)) == schema


def test_no_setting_is_lost_on_the_way_from_a_file():
    """Only live objects and what the core fills in itself cannot be written."""
    left_out = set(EvaluationConfig.model_fields) - set(job_schema()["properties"])
    assert left_out == set(marked(EvaluationConfig, Internal)) - {"dataset"}
    assert {"pre_agent_hooks", "user", "arm"} <= left_out


OLDER = """
jobs_dir: out
n_attempts: 3
orchestrator:
  n_concurrent_trials: 7
environment:
  type: daytona
  env: [LEVEL=4, HOME]
agents:
  - name: codex-acp
    model_name: openai/gpt-5
  - name: oracle
    kwargs: {speed: 2}
datasets:
  - path: tasks
    task_names: ["a*"]
"""


def test_files_in_the_older_shape(read):
    spec = read(OLDER)
    config = spec.config
    assert spec.choice.tasks_dir == Path("tasks") and spec.jobs_dir == Path("out")
    assert (config.trials, config.concurrency, config.sandbox, config.include_tasks) == (3, 7, "daytona", ["a*"])
    assert config.agent_env == {"LEVEL": "4", "HOME": str(Path.home())}
    assert [arm.name for arm in config.arms()] == ["codex-acp+openai/gpt-5", "oracle"]
    assert config.arms()[0].settings == {"agent": "codex-acp", "model": "openai/gpt-5"}
    assert config.arms()[1].settings == {"agent": "oracle", "agent_options": {"speed": "2"}}
    one = read("agents:\n  - {name: oracle, model_name: m}\ndatasets:\n  - {name: d, version: 1.1}\n")
    assert (one.config.agent, one.config.model, one.choice.dataset) == ("oracle", "m", "d@1.1")
    with pytest.raises(ConfigurationError, match="line 2: unknown field 'modl_name', did you mean 'model_name'"):
        read("agents:\n  - {name: oracle, modl_name: m}\n")
    with pytest.raises(ConfigurationError, match="one set of tasks"):
        read("datasets:\n  - path: a\n  - path: b\n")


def test_a_file_that_names_one_task_is_a_rollout(tmp_path):
    path = tmp_path / "trial.yaml"
    path.write_text(f"task_dir: {EXAMPLES / 'hello-file'}\nagent: oracle\nconcurrency: 64\nrollout_name: r\n")
    config = trial_config_from_yaml(path)
    assert isinstance(config, RolloutConfig)
    assert config.task_path == EXAMPLES / "hello-file" and config.rollout_name == "r" and config.job_name is None
    for several in ("matrix: {agents: [a, b]}", "trials: 3", "n_attempts: 2"):
        path.write_text(f"task_dir: {EXAMPLES / 'hello-file'}\n{several}\n")
        with pytest.raises(ConfigurationError, match=r"makes several rollouts of the task .*hello-file"):
            trial_config_from_yaml(path)


def test_a_file_that_names_a_folder_of_tasks_is_a_job(tmp_path):
    tasks = tmp_path / "tasks"
    for name in ("a", "b"):
        shutil.copytree(EXAMPLES / "hello-file", tasks / name)
    path = tmp_path / "trial.yaml"
    path.write_text(f"task_dir: {tasks}\nagent: oracle\nconcurrency: 64\n")
    job = trial_config_from_yaml(path)
    assert isinstance(job, Evaluation)
    assert [task.name for task in job.tasks()] == ["a", "b"] and job.config.concurrency == 64
    shutil.rmtree(tasks / "b")
    assert isinstance(trial_config_from_yaml(path), Evaluation), "a folder is a job however many tasks it holds"
    shutil.rmtree(tasks / "a")
    with pytest.raises(TaskError, match="is not a task and holds none"):
        trial_config_from_yaml(path)
    tasks.rmdir()
    with pytest.raises(ConfigurationError, match="does not exist"):
        trial_config_from_yaml(path)


def test_jobs_of_the_same_second_do_not_share_a_folder(tmp_path, monkeypatch):
    from benchflow_core.evaluation.job import Evaluation

    monkeypatch.setattr("benchflow_core.evaluation.job.job_name", lambda: "now")
    jobs = [Evaluation(tmp_path, tmp_path / "jobs") for _ in range(3)]
    for job in jobs:
        job._claim().release()
    assert [job.job_dir.name for job in jobs] == ["now", "now-2", "now-3"]
    named = Evaluation(tmp_path, tmp_path / "jobs", job_name="now")
    with pytest.raises(ConfigurationError, match="already exists"):
        named._claim()
