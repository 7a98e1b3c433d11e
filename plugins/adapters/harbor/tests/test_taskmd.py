"""BenchFlow's task.md: frontmatter, body sections, folders, verifier.md."""

from __future__ import annotations

import os

import pytest

from benchflow_core.contracts.sandboxes import Resources
from benchflow_core.errors import TaskError


def test_defaults_are_benchflows(taskmd) -> None:
    task = taskmd(**{"oracle/solve.sh": "x"})
    assert (task.format, task.instruction, task.dialect.name) == ("task.md", "Do it.", "benchflow")
    assert task.environment.resources == Resources(1, 2048, 10240)
    assert (task.verifier.tests_target, task.verifier.tests_links) == ("/verifier", ("/tests",))
    assert (task.solution.target, task.locked_paths) == ("/oracle", ("/oracle", "/solution", "/tests", "/verifier"))
    assert task.drive is None and task.notices == ()


def test_harbors_folders_keep_harbors_places(taskmd) -> None:
    task = taskmd(**{"verifier/test.sh": None, "tests/test.sh": "x", "solution/solve.sh": "x"})
    assert (task.verifier.tests_target, task.verifier.tests_links, task.solution.target) == ("/tests", (), "/solution")


def test_both_folders(taskmd) -> None:
    task = taskmd(**{"tests/test.sh": "x"})
    assert task.verifier.tests[0].name == "verifier" and "not used: verifier/ is there too" in task.notices[0]


def test_settings(taskmd) -> None:
    task = taskmd(
        """
schema_version: "1.3"
task: {name: o/n, version: "3"}
metadata: {day: 2024-01-02}
agent: {timeout_sec: 5, prompt_prefix: " Be brief. ", user: 7}
verifier: {timeout_sec: 6, reward_range: [-1, 1], pytest_plugins: [ctrf], hardening: {cleanup_conftests: false}}
sandbox: {docker_image: img, cpus: 3, memory: 1G, network_mode: no-network, env: {A: b}}
oracle: {env: {S: t}, timeout_sec: 9}
benchflow: {isolation: shared, keep_changes: [/usr/bin/x], document_version: "0.3"}
""",
        **{"oracle/solve.sh": "x"},
    )
    assert (task.name, task.version, task.agent_timeout, task.agent_user) == ("o/n", "3", 5.0, "7")
    assert (task.environment.image, task.environment.resources.memory_mb) == ("img", 1024)
    assert (task.environment.network.mode, task.environment.env) == ("none", {"A": "b"})
    assert (task.verifier.isolation, task.verifier.keep_changes) == ("shared", ("/usr/bin/x",))
    assert task.verifier.params == {"hardening": {"cleanup_conftests": False}, "pytest_plugins": ["ctrf"]}
    assert (task.solution.env, task.solution.timeout) == ({"S": "t"}, 9.0)
    assert task.dialect.reward_range == (-1.0, 1.0)
    assert task.metadata["day"] == "2024-01-02" and task.metadata["benchflow"]["document_version"] == "0.3"


BAD = {
    "no frontmatter": ("hello\n", 1, "must start with YAML frontmatter"),
    "not closed": ("---\na: 1\n", 1, "without a closing line"),
    "broken yaml": ("---\nagent:\n  timeout_sec: 5\n user: x\n---\n", 4, "is not valid YAML"),
    "tab": ("---\nagent:\n\ttimeout_sec: 5\n---\n", 3, "is not valid YAML"),
    "a list": ("---\n- a\n---\n", 2, "must have 'key: value' settings"),
    "twice": ("---\nagent: {}\nagent: {}\n---\n", 3, "key 'agent' is there twice"),
    "unknown": ("---\nagent: {}\nverifer: {}\n---\n", 3, "unknown key 'verifer'. Did you mean 'verifier'?"),
    "unknown below": ("---\nsandbox:\n  cpu: 2\n---\n", 3, "unknown key 'sandbox.cpu'. Did you mean 'cpus'?"),
    "wrong type": ("---\nsandbox:\n  env:\n    A: 1\n---\n", 4, "sandbox.env.A must be text in quotes"),
    "no time": ("---\nagent: {timeout_sec: 0}\n---\n", 2, "above zero"),
    "infinite time": ("---\nagent: {timeout_sec: .inf}\n---\n", 2, "above zero"),
    "major version": ('---\nschema_version: "2.0"\n---\n', 2, "a version of the schema that is known"),
    "two names for one": ("---\noracle: {}\nsolution: {}\n---\n", 2, "oracle and solution mean the same"),
    "allowlist of nothing": ("---\nsandbox: {network_mode: allowlist}\n---\n", 2, "must name the hosts"),
    "contradiction": ("---\nsandbox: {network_mode: public, allow_internet: false}\n---\n", 2, "contradicts"),
    "narrow range": ("---\nverifier: {reward_range: [0.1, 1]}\n---\n", 2, "low <= 0"),
    "profile": ("---\nprofile: fast\n---\n", 2, "unknown profile 'fast'"),
    "folder outside": ("---\nverifier: ../x\n---\n", 2, "must be a table or a folder of the task"),
    "two sections": ("---\n---\n## prompt\na\n## Prompt\nb\n", 5, "has two sections '## prompt'"),
    "unknown role": ("---\nagents: {roles: {a: {agent: x}}}\nscenes:\n- roles: [b]\n---\n", 4, "the role 'b'"),
    "role outside": (
        "---\nagents: {roles: {a: {agent: x}, b: {agent: x}}}\nscenes:\n- roles: [a]\n  turns:\n  - role: b\n---\n",
        6,
        "turn 1 is for role 'b'",
    ),
    "role without agent": ("---\nagents:\n  roles:\n    a: {model: m}\n---\n", 4, "agents.roles.a.agent is missing"),
    "order": ("---\nbenchflow: {prompt: {order: [top]}}\n---\n", 2, "must list some of"),
    "host capture": (
        "---\nsandbox:\n  setup_commands:\n  - {command: x, capture_dir: /a, capture_dir_b64_env: B}\n---\n",
        4,
        "would write into the host's environment",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_refused_with_its_line(taskmd, write, case: str) -> None:
    from benchflow_adapter_harbor.taskmd_load import load_taskmd

    text, line, message = BAD[case]
    folder = write({"task.md": text, "verifier/test.sh": "x", "environment/Dockerfile": "x"})
    with pytest.raises(TaskError) as caught:
        load_taskmd(folder)
    assert message in str(caught.value)
    assert f"task.md:{line}: " in caught.value.message


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Just text.\n", "Just text."),
        ("Before.\n\n## prompt\n\nThe prompt.\n", "The prompt."),
        ("Before.\n\n## role:x\n\nX.\n", "Before."),
        ("## prompt\n\nKeep \\## not this\n\\## role:x\nas text.\n", "Keep \\## not this\n## role:x\nas text."),
        ("# Title\n\n## Steps\n\nMore.\n", "# Title\n\n## Steps\n\nMore."),
        ("", ""),
    ],
)
def test_the_prompt(taskmd, body: str, expected: str) -> None:
    assert taskmd(body=body).instruction == expected


ROLES = "agents: {roles: {plan: {agent: a, model: m, env: {N: 1}}, code: {agent: b}}}\n"
BODY = "Base.\n\n## role:plan\n\nPlan it.\n\n## scene:two\n\nScene two.\n"


def turns(task) -> list[tuple[str, str, str | None]]:
    return [(s["name"], t["role"], t["prompt"]) for s in task.drive["scenes"] for t in s["turns"]]


def test_prompts_by_precedence(taskmd) -> None:
    scenes = "scenes:\n- {name: one, turns: [plan, code]}\n- {name: two, turns: [code, {role: plan, prompt: Turn.}]}\n"
    task = taskmd(ROLES + scenes, BODY)
    assert turns(task) == [
        ("one", "plan", "Plan it."),
        ("one", "code", None),
        ("two", "code", "Scene two."),
        ("two", "plan", "Turn."),
    ]
    first = task.drive["scenes"][0]["roles"][0]
    assert (first["name"], first["agent"], first["model"], first["env"]) == ("plan", "a", "m", {"N": "1"})


def test_prompts_appended(taskmd) -> None:
    head = (
        ROLES
        + "scenes: [{name: two, turns: [{role: plan, prompt: Turn.}]}]\nbenchflow: {prompt: {composition: append}}\n"
    )
    assert turns(taskmd(head, BODY)) == [("two", "plan", "Base.\n\nPlan it.\n\nScene two.\n\nTurn.")]


def test_a_scene_without_turns_asks_each_role(taskmd) -> None:
    assert turns(taskmd(ROLES + "scenes: [{}]\n", "Base.\n")) == [("scene-0", "plan", None), ("scene-0", "code", None)]


def test_prompt_files_win_over_sections(taskmd) -> None:
    files = {"prompts/role.plan.md": "From file.\n", "prompts/user-persona.md": "Grumpy.\n"}
    task = taskmd(ROLES + "user: {model: scripted}\nscenes: [{turns: [plan]}]\n", BODY, **files)
    assert turns(task)[0][2] == "From file."
    assert task.drive["user"] == {"model": "scripted", "persona": "Grumpy."}


def test_short_forms(taskmd) -> None:
    task = taskmd("name: demo\nimage: img:1\n")
    assert (task.name, task.environment.image) == ("benchflow/demo", "img:1")
    task = taskmd("name: demo\ntask: {name: o/other}\nverifier: check/\n", **{"check/test.sh": "x"})
    assert (task.name, task.verifier.tests[0].name) == ("o/other", "check")


def test_a_profile_gives_defaults(taskmd) -> None:
    task = taskmd("profile: code-change\nagent: {timeout_sec: 5}\n")
    assert (task.agent_timeout, task.environment.workdir, task.agent_network.mode) == (5.0, "/repo", "none")


STRATEGY = "---\nverifier:\n  strategies:\n    main: {%s}\n%s---\n\n## role:judge\n\nBe fair.\n"
METHODS = {
    "type: script, command: ./test.sh": ("test-script", "test.sh", {}),
    "type: script, command: bash test.sh --fast": ("test-script", "test.sh", {"command": "bash test.sh --fast"}),
    "type: script, command: make check": ("test-script", "test.sh", {"command": "make check"}),
    "type: llm-judge, rubric: r.toml": ("llm-judge", "test.sh", {"rubric": "r.toml"}),
    "type: reward-kit, root: kit": ("reward-kit", "test.sh", {"root": "kit"}),
    "type: agent-judge, role: judge, isolation: verifier-only, inputs: [/app]": (
        "agent-judge",
        "test.sh",
        {"role": "judge", "isolation": "verifier-only", "inputs": ["/app"]},
    ),
    "type: ors-episode, inputs: [a.json]": ("ors-episode", "test.sh", {"inputs": ["a.json"]}),
}


@pytest.mark.parametrize("strategy", METHODS)
def test_strategies_become_methods(taskmd, strategy: str) -> None:
    method, script, params = METHODS[strategy]
    settings = taskmd(**{"verifier/verifier.md": STRATEGY % (strategy, "")}).verifier
    assert (settings.method, settings.script) == (method, script)
    if method != "test-script":
        assert settings.params["role_prompts"] == {"judge": "Be fair."}
        assert settings.params["strategy"] == "main"
        settings_params = {k: v for k, v in settings.params.items() if k not in ("role_prompts", "strategy")}
    else:
        settings_params = settings.params
    assert settings_params == params


def test_an_aggregate_policy_reaches_the_dialect(taskmd) -> None:
    outputs = "  outputs: {aggregate_policy: {method: all_pass}}\n"
    task = taskmd(**{"verifier/verifier.md": STRATEGY % ("type: script, command: ./test.sh", outputs)})
    assert task.dialect.policy == (("method", "all_pass"),)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("type: magic", "verifier.md:4: verifier.strategies.main.type must be one of"),
        ("type: script", "command must be text for script"),
        ("type: script, command: /bin/sh x", "must start with a program, or a path inside"),
        ("type: script, command: ../x.sh", "must start with a program, or a path inside"),
        ("type: script, command: ./gone.sh", "gone.sh: does not exist, but verifier.md runs it"),
        ('type: script, command: "\'"', "is not a command a shell understands"),
        ("type: reward-kit, root: ../x", "root must be a path inside the verifier folder"),
        ("type: agent-judge, role: nobody, isolation: verifier-only, inputs: [a]", "no section '## role:nobody'"),
        ("type: llm-judge, rubric: r, context: a, context_file: b", "both context and context_file"),
        ("type: ors-episode, inputs: [a], format: xml", "format must be json, jsonl or auto"),
    ],
)
def test_broken_strategies(taskmd, strategy: str, message: str) -> None:
    with pytest.raises(TaskError) as caught:
        taskmd(**{"verifier/verifier.md": STRATEGY % (strategy, "")})
    assert message in caught.value.message


def test_no_test_at_all(taskmd) -> None:
    with pytest.raises(TaskError, match=r"verifier/test\.sh|tests/test\.sh"):
        taskmd(**{"verifier/test.sh": None})


def test_a_hook_for_the_host_is_never_run(taskmd) -> None:
    assert "never run" in taskmd(**{"environment/benchflow-pre-compose.sh": "x"}).notices[0]


def test_lenient_by_environment(taskmd, monkeypatch) -> None:
    assert not taskmd().dialect.lenient
    monkeypatch.setitem(os.environ, "BENCHFLOW_REWARD_LENIENT", "1")
    assert taskmd().dialect.lenient


def test_yaml_that_grows(taskmd) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(TaskError, match="too large once its aliases are written out"):
        taskmd("metadata:\n" + "".join(f"  {line}\n" for line in lines))


def test_yaml_that_holds_itself(taskmd) -> None:
    with pytest.raises(TaskError):
        taskmd("metadata: &m\n  x: *m\n")


@pytest.mark.parametrize("levels", [150, 3000, 200_000])
def test_yaml_without_a_bottom(taskmd, levels: int) -> None:
    """The C parser would end the process."""
    with pytest.raises(TaskError, match=r"levels deep|not valid YAML"):
        taskmd("metadata: {x: " + "[" * levels + "]" * levels + "}\n")
