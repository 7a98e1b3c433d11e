"""`--dry-run`: the whole plan and everything in its way, and nothing is started."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def bench(bench, name):
    """On the sandbox that is everywhere, whichever ranks first on this host."""

    def run(*args, **more):
        creates = args[0] in ("eval", "run", "job")
        return bench(*args, *(["--sandbox", name("local")] if creates else []), **more)

    return run


def left(tmp_path, cache):
    """What a dry run may leave: the caches, and no job, no box, no work folder."""
    assert not (tmp_path / "jobs").exists()
    assert not list(cache.glob("work/*"))


def test_a_plan_of_arms_and_trials(bench, name, examples, tmp_path, cache):
    agents = f"{name('oracle')},{name('nop')}"
    done = bench("eval", "create", "-t", examples, "-a", agents, "--trials", "2", "--dry-run", "--json")
    assert done.code == 0, done.err
    plan = done.json
    assert plan["tasks"] == 6 and plan["rollouts"] == 24 and plan["problems"] == []
    assert [arm["name"] for arm in plan["arms"]] == agents.split(",")
    row = next(r for r in plan["plan"] if (r["task"], r["arm"]) == ("hello-file", name("nop")))
    assert row["roles"] == [{"role": "agent", "agent": name("nop"), "model": None}]
    assert row["sandbox"] and row["isolation"] == "fresh" and row["digest"].startswith("sha256:")
    assert {"adapter", "sandbox", "agent", "driver", "verifier"} <= {p["kind"] for p in row["plugins"]}
    left(tmp_path, cache)
    table = bench("eval", "create", "-t", examples, "-a", agents, "--dry-run")
    assert "6 tasks" in table.out and "× 2 arms" in table.out and "Nothing was started." in table.out


def test_everything_that_is_in_the_way_at_once(bench, name, examples, tmp_path, cache):
    shutil.copytree(examples / "hello-file", tmp_path / "tasks" / "good")
    for broken, text in {
        "gpu": "\n[environment]\ngpus = 1\n",
        "vars": '\n[verifier.env]\nTOKEN = "${MY_TOKEN}"\nOTHER = "${MY_OTHER:-x}"\n',
    }.items():
        folder = shutil.copytree(examples / "hello-file", tmp_path / "tasks" / broken)
        (folder / "task.toml").write_text((folder / "task.toml").read_text() + text)
    (tmp_path / "tasks" / "torn").mkdir()
    (tmp_path / "tasks" / "torn" / "task.toml").write_text("[oops")
    done = bench(
        "eval", "create", "-t", "tasks", "-a", name("oracle"), "--dry-run", "--json", more={"MY_TOKEN": "sesame-9"}
    )
    assert done.code == 1
    report = done.json
    states = {row["task"]: row["problem"] and row["problem"]["code"] for row in report["plan"]}
    assert states == {
        "good": None,
        "gpu": "capability_missing",
        "vars": "configuration_error",
        "torn": "task_error",
    }
    assert report["host_variables"] == [
        {"name": "MY_OTHER", "required": False, "tasks": ["vars"], "allowed": False, "set": False},
        {"name": "MY_TOKEN", "required": True, "tasks": ["vars"], "allowed": False, "set": True},
    ]
    assert "sesame-9" not in done.out and len(report["problems"]) == 3
    skipping = ["--skip-unsupported", "--allow-env", "MY_TOKEN", "--exclude", "torn", "--dry-run"]
    allowed = bench("eval", "create", "-t", "tasks", "-a", name("oracle"), *skipping, more={"MY_TOKEN": "sesame-9"})
    assert allowed.code == 0 and "host variable MY_TOKEN (1 tasks): allowed" in allowed.out, allowed.out
    left(tmp_path, cache)


def test_a_key_that_is_refused_is_known_before_the_start(bench, examples, somebodys, local_model, tmp_path, cache):
    args = ["eval", "create", "-t", examples / "hello-file", "-a", "somebodys", "-m", "openai/some-model", "--dry-run"]
    fine = bench(*args, more=somebodys)
    assert fine.code == 0 and "model openai/some-model: answers" in fine.out, fine.err
    asked = len(local_model.log)
    assert asked == 1
    local_model.fault(status=401)
    refused = bench(*args, "--json", more={**somebodys, "OPENAI_API_KEY": "sk-wrong-key"})
    assert refused.code == 1
    [model] = refused.json["models"]
    assert model["problem"]["code"] == "credential_refused" and model["provider"] == "openai"
    assert "sk-wrong-key" not in refused.out + refused.err
    keyless = {k: v for k, v in somebodys.items() if k != "OPENAI_API_KEY"}
    missing = bench(*args, "--json", more=keyless)
    assert missing.code == 1 and "OPENAI_API_KEY" in missing.json["problems"][0]
    left(tmp_path, cache)


def test_each_model_is_asked_once_for_all_its_arms(bench, name, examples, somebodys, local_model, tmp_path):
    models = ["-m", "openai/one", "-m", "openai/two"]
    done = bench("eval", "create", "-t", examples, "-a", "somebodys", *models, "--dry-run", "--json", more=somebodys)
    assert done.code == 0, done.err
    assert [m["model"] for m in done.json["models"]] == ["openai/one", "openai/two"]
    assert [seen.model for seen in local_model.log] == ["one", "two"]
