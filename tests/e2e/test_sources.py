"""Jobs whose tasks come from repositories, datasets and job files, as a user types them."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def bench(bench, name):
    """On the sandbox that is everywhere, whichever ranks first on this host."""

    def run(*args, **more):
        creates = args[0] in ("run", "job") or args[:2] in (("eval", "create"), ("eval", "run"), ("eval", "-t"))
        return bench(*args, *(["--sandbox", name("local")] if creates else []), **more)

    return run


@pytest.fixture
def git(env, tmp_path):
    who = {f"GIT_{a}_{b}": "t@example.org" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}

    def run(*args, cwd):
        done = subprocess.run(["git", *args], cwd=cwd, env={**env, **who}, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return run


@pytest.fixture
def repository(git, tmp_path, examples):
    """A bare repository with two tasks, and the user's setting that puts it in GitHub's place."""
    (tmp_path / "home").mkdir(exist_ok=True)
    work, mirror = tmp_path / "work", tmp_path / "mirror" / "benchflow-ai"
    (work / "tasks").mkdir(parents=True)
    mirror.mkdir(parents=True)
    shutil.copytree(examples / "hello-file", work / "tasks" / "edit-pdf")
    shutil.copytree(examples / "fix-the-script", work / "tasks" / "xlsx-recover-data")
    git("init", "-q", "-b", "main", cwd=work)
    git("add", "-A", cwd=work)
    git("commit", "-qm", "tasks", cwd=work)
    git("clone", "-q", "--bare", str(work), str(mirror / "skillsbench"), cwd=tmp_path)
    place = f'[url "file://{tmp_path}/mirror/"]\n\tinsteadOf = https://github.com/\n'
    (tmp_path / "home" / ".gitconfig").write_text(place)
    return work


@pytest.fixture
def publish(git, repository, tmp_path):
    """Commit what is in the working folder, and push it to where the tests fetch from."""

    def run(message="more"):
        git("add", "-A", cwd=repository)
        git("commit", "-qm", message, cwd=repository)
        git("push", "-q", str(tmp_path / "mirror/benchflow-ai/skillsbench"), "main", cwd=repository)
        return git("rev-parse", "HEAD", cwd=repository)

    return run


@pytest.fixture
def dataset(bench, git, repository, publish):
    """`skillsbench@1.1` in the registry of the repository itself, as the documents have it."""
    pinned = git("rev-parse", "HEAD", cwd=repository)
    digests = {row["task"]: row["digest"] for row in bench("tasks", "digest", repository / "tasks", "--json").json}
    entry = {
        "name": "skillsbench",
        "version": "1.1",
        "bench_version": ">=0.6,<0.9",
        "tasks": [
            {
                "git_url": "https://github.com/benchflow-ai/skillsbench",
                "git_commit_id": pinned,
                "path": f"tasks/{name}",
                "digest": digest,
            }
            for name, digest in digests.items()
        ],
    }
    gate = {**entry, "version": "2.0", "bench_version": ">=99"}
    (repository / "registry.json").write_text(json.dumps([entry, gate]))
    shutil.rmtree(repository / "tasks" / "edit-pdf")
    publish("registry, and tasks that went on")
    return pinned, digests


def test_one_task_of_a_repository_as_the_documents_write_it(bench, name, repository, git, result_of):
    args = ["--source-repo", "benchflow-ai/skillsbench", "--source-path", "tasks/edit-pdf"]
    done = bench("eval", "create", *args, "--agent", name("oracle"))
    assert done.code == 0, done.err
    result = result_of()
    assert result["task_name"] == "edit-pdf" and result["rewards"] == {"reward": 1.0}
    head = git("rev-parse", "HEAD", cwd=repository)
    for file in ("result.json", "config.json"):
        source = json.loads((result["dir"] / file).read_text())["source"]
        assert source["resolved_sha"] == head and source["path"] == "tasks/edit-pdf"
        assert source["uri"] == "https://github.com/benchflow-ai/skillsbench"
    assert json.loads((result["dir"] / "lock.json").read_text())["task"]["source"]["resolved_sha"] == head
    assert "dataset_name" not in result and result["task_digest"].startswith("sha256:")


def test_a_folder_of_tasks_a_commit_and_a_branch(bench, name, repository, publish, git, tmp_path):
    first = git("rev-parse", "HEAD", cwd=repository)
    (repository / "tasks/edit-pdf/instruction.md").write_text("Now do this.\n")
    publish()
    args = [
        "eval",
        "create",
        "--source-repo",
        tmp_path / "mirror/benchflow-ai/skillsbench",
        "-a",
        name("oracle"),
        "--json",
    ]
    both = bench(*args)
    assert both.code == 0 and both.json["total"] == 2, both.err
    pinned = bench(*args, "--source-ref", first, "--include", "edit-*")
    assert pinned.code == 0 and pinned.json["total"] == 1, pinned.err
    assert pinned.json["source_provenance"]["resolved_sha"] == first != both.json["source_provenance"]["resolved_sha"]
    missed = bench(*args, "--include", "edit-pfd")
    assert missed.code == 1 and "Did you mean 'edit-pdf'?" in missed.err
    nowhere = bench(*args, "--source-path", "task")
    assert nowhere.code == 1 and "has no 'task'" in nowhere.err and "Did you mean 'tasks'?" in nowhere.err


def test_a_job_file_with_a_source(bench, name, repository, tmp_path):
    (tmp_path / "job.yaml").write_text(
        f"source:\n  repo: benchflow-ai/skillsbench\n  path: tasks\n  ref: main\nagent: {name('nop')}\nconcurrency: 2\n"
    )
    done = bench("eval", "create", "--config", "job.yaml", "--json")
    assert done.code == 0 and done.json["total"] == 2 and done.json["passed"] == 0, done.err
    won = bench("eval", "run", "--config", "job.yaml", "-a", name("oracle"), "--config-override", "trials=2", "--json")
    assert won.code == 0 and won.json["passed"] == won.json["total"] == 4, won.err
    wrong = bench("eval", "create", "--config", "job.yaml", "--config-override", "agnet=x")
    assert wrong.code == 1 and "unknown field 'agnet', did you mean 'agent'?" in wrong.err


@pytest.mark.parametrize("benchmark", ["harvey-lab", "programbench"])
def test_the_configs_of_adapted_benchmarks(bench, name, repository, git, tmp_path, examples, benchmark):
    """As they lie in this repository, with their tasks in GitHub's place; only who plays is another."""
    work = tmp_path / "converted"
    shutil.copytree(examples / "hello-file", work / "datasets" / benchmark / "tasks" / "one")
    git("init", "-q", "-b", "main", cwd=work)
    git("add", "-A", cwd=work)
    git("commit", "-qm", "tasks", cwd=work)
    git("clone", "-q", "--bare", str(work), str(tmp_path / "mirror/benchflow-ai/benchmarks"), cwd=tmp_path)
    config = examples.parents[1] / "benchmarks" / benchmark / f"{benchmark}-gemini-flash-lite.yaml"
    done = bench(
        "eval", "create", "--config", config, "-a", name("oracle"), "--config-override", "model=null", "--json"
    )
    assert done.code == 0 and (done.json["passed"], done.json["total"]) == (1, 1), done.err
    assert done.json["source_provenance"]["path"] == f"datasets/{benchmark}/tasks"
    asked = config.read_text()
    assert "agent: gemini" in asked and "environment: docker" in asked and "concurrency: 4" in asked


def test_the_python_of_the_documents(bench, name, repository, tmp_path, env, monkeypatch):
    for key in ("HOME", "BENCHFLOW_CACHE"):
        monkeypatch.setenv(key, env[key])
    monkeypatch.chdir(tmp_path)
    from benchflow._utils.benchmark_repos import resolve_source

    task_path = resolve_source("benchflow-ai/skillsbench", path="tasks/edit-pdf")
    assert task_path.name == "edit-pdf" and (task_path / "task.toml").is_file()


async def test_an_evaluation_of_a_file(name, repository, tmp_path, env, monkeypatch):
    for key in ("HOME", "BENCHFLOW_CACHE"):
        monkeypatch.setenv(key, env[key])
    monkeypatch.chdir(tmp_path)
    from benchflow.evaluation import Evaluation

    (tmp_path / "job.yaml").write_text(
        f"source:\n  repo: benchflow-ai/skillsbench\n  path: tasks/edit-pdf\nagent: {name('oracle')}\n"
        f"environment: {name('local')}\n"
    )
    job = Evaluation.from_yaml("job.yaml")
    assert job.config.source_provenance["path"] == "tasks/edit-pdf"
    result = await job.run()
    assert f"Score: {result.passed}/{result.total} ({result.score:.1%})" == "Score: 1/1 (100.0%)"


def test_a_dataset_of_the_default_registry(bench, name, dataset, tmp_path):
    pinned, digests = dataset
    done = bench("eval", "create", "-d", "skillsbench@1.1", "--agent", name("oracle"), "--json")
    assert done.code == 0 and done.json["passed"] == 2, done.err
    assert (done.json["dataset_name"], done.json["dataset_version"]) == ("skillsbench", "1.1")
    results = list(tmp_path.glob("jobs/*/*/result.json"))
    assert len(results) == 2
    for path in results:
        for file in ("result.json", "config.json"):
            stamped = json.loads((path.parent / file).read_text())
            assert (stamped["dataset_name"], stamped["dataset_version"]) == ("skillsbench", "1.1")
            assert stamped["source"]["resolved_sha"] == pinned
        result = json.loads(path.read_text())
        assert result["task_digest"] == digests[result["task_name"]]


def test_a_part_of_a_dataset_and_its_gate(bench, name, dataset, tmp_path):
    part = bench(
        "eval", "create", "-d", "skillsbench@1.1", "--include", "xlsx-recover-data", "-a", name("oracle"), "--json"
    )
    assert part.code == 0 and part.json["total"] == 1, part.err
    refused = bench("eval", "create", "-d", "skillsbench@2.0", "-a", name("oracle"), "-o", "refused")
    assert refused.code == 1 and "--ignore-bench-version" in refused.err and not (tmp_path / "refused").exists()
    args = ["-d", "skillsbench@2.0", "-a", name("oracle"), "--ignore-bench-version", "--job-name", "tried"]
    tried = bench("eval", "create", *args)
    assert tried.code == 0 and "may not be comparable" in tried.err
    for path in tmp_path.glob("jobs/tried/*/result.json"):
        assert any("may not be comparable" in notice for notice in json.loads(path.read_text())["notices"])


def test_a_digest_that_does_not_fit_stops_everything(bench, name, dataset, repository, tmp_path):
    registry = json.loads((repository / "registry.json").read_text())
    registry[0]["tasks"][1]["digest"] = "sha256:" + "0" * 64
    (tmp_path / "own.json").write_text(json.dumps(registry))
    done = bench("eval", "create", "-d", "skillsbench@1.1", "--registry", "own.json", "-a", name("oracle"))
    assert done.code == 1 and "not what the registry pins" in done.err and "Nothing was run" in done.err
    assert not (tmp_path / "jobs").exists()


def test_what_came_from_a_repository_can_be_had_again(bench, name, repository, result_of, tmp_path):
    """The cache is gone, as on another machine: the commit is fetched again, wherever that is now."""
    args = ["--source-repo", "benchflow-ai/skillsbench", "--source-path", "tasks", "--include", "edit-pdf"]
    assert bench("eval", "create", *args, "-a", name("oracle"), "--job-name", "first").code == 0
    result = result_of()
    shutil.rmtree(tmp_path / "cache")
    more = {"BENCHFLOW_CACHE": str(tmp_path / "elsewhere")}
    again = bench("eval", "reproduce", result["dir"], "-o", "again", more=more)
    assert again.code == 0, again.err
    repeated = result_of(tmp_path / "again")
    assert repeated["task_digest"] == result["task_digest"] and repeated["source"] == result["source"]
    longer = bench("eval", "extend", "jobs/first", "--trials", "2", "--json")
    assert longer.code == 0 and longer.json["total"] == 2, longer.err


def test_a_cell_of_the_documents_matrix(bench, name, repository, result_of, tmp_path):
    common = [
        "--tasks-dir",
        repository / "tasks",
        "--include",
        "edit-pdf",
        "--agent",
        name("oracle"),
        "--concurrency",
        "1",
    ]
    flags = ["--usage-tracking", "required", "--agent-idle-timeout", "none", "--agent-env", "LLM_CACHING_PROMPT=false"]
    cell = ["--skill-mode", "no-skill", "--jobs-dir", "jobs/gemini-noskill"]
    done = bench("eval", "create", *common, *flags, *cell, "--sandbox-user", "null")
    assert done.code == 0, done.err
    result = result_of(tmp_path / "jobs" / "gemini-noskill")
    config = json.loads((result["dir"] / "config.json").read_text())
    assert result["skill_mode"] == "no-skill" and result["model"] is None, "the solution is played, and asks no model"
    assert config["agent_idle_timeout_sec"] is None and config["agent_env"] == {"LLM_CACHING_PROMPT": "false"}
    assert config["sandbox_user"] == "root", "null, in the older words"


def test_two_commands_at_once_share_a_cache(command, env, repository, tmp_path, name):
    args = ["eval", "create", "--source-repo", "benchflow-ai/skillsbench", "--source-path", "tasks/edit-pdf"]
    jobs = [
        subprocess.Popen(
            [*command, *args, "-a", name("oracle"), "-e", name("local"), "--job-name", f"j{n}"],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    for job in jobs:
        out, err = job.communicate(timeout=120)
        assert job.returncode == 0, err + out


def test_older_spellings(bench, name, examples):
    task = examples / "hello-file"
    for words in (["run"], ["job"], ["eval"], ["eval", "run"]):
        done = bench(*words, "-t", task, "-a", name("oracle"), "--retries", "1", "--dry-run")
        assert done.code == 0 and "Ready." in done.out, done.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "no task was named"),
        (["-t", "x", "-d", "a@1"], "--tasks-dir and --dataset both say which tasks to run"),
        (["--source-ref", "main"], "without --source-repo"),
        (["-t", "x", "--registry", "r.json"], "--registry says nothing without --dataset"),
        (["-d", "skillsbench"], "names no version"),
        (["--source-repo", "ftp://example.org/x"], "no installed source serves"),
        (["-t", "x", "--skill-mode", "skilful"], "expected one of no-skill"),
    ],
)
def test_what_cannot_be_meant(bench, name, args, message):
    done = bench("eval", "create", *args, "-a", name("oracle"))
    assert done.code in (1, 2) and message in done.err, done.err
