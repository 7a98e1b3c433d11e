"""One limit for every YAML that is read: what is too large, too deep, circular or no text is one clear line."""

from __future__ import annotations

import time

import pytest

from benchflow_core.contracts.bounded_yaml import load_yaml
from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.settings.config_file import ConfigFile

LEVELS = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
BAD = {
    "bomb": ("\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x]", *LEVELS]), "more than 20000 values"),
    "circle": ("a: &a [1, *a]", "line 1: an alias stands for something that it is a part of"),
    "surrogate": ('a: "x\\ud800"', "line 1: half a surrogate pair is no text"),
    "deep": ("a: " + "[" * 200 + "]" * 200, "nested more than 100 levels deep"),
    "deeper": ("[" * 100_000, "nested too deeply"),
    "long": ("a: " + "x" * 1_100_000, "larger than 1024 KiB"),
    "year": ("a: 2026-13-45", "cannot be read as YAML"),
    "torn": ("a: [", "line 1"),
}


def read_job_file(text, tmp_path):
    (tmp_path / "job.yaml").write_text(text)
    ConfigFile(tmp_path / "job.yaml")


def read_compose_file(text, tmp_path):
    pytest.importorskip("benchflow_sandbox_docker.compose.document").ComposeDocument(text, "compose.yaml")


def read_script(text, tmp_path):
    pytest.importorskip("benchflow_agent_scripted.yamltree").read_yaml(text, "script.yaml")


@pytest.mark.parametrize("read", [read_job_file, read_compose_file, read_script])
@pytest.mark.parametrize("name", BAD)
def test_what_has_no_end_is_one_line_at_once(read, name, tmp_path):
    text, said = BAD[name]
    if read is read_script and name in ("long", "year"):
        pytest.skip("a script may be long, and dates are text in it")
    started = time.process_time()
    with pytest.raises(BenchflowError) as refused:
        read(text, tmp_path)
    assert said.split(":")[-1].strip() in str(refused.value) or (read is read_script and name in ("deeper", "torn"))
    assert "\n" not in refused.value.message and time.process_time() - started < 5


def test_aliases_within_the_limit_are_what_they_stand_for():
    value, _ = load_yaml("base: &b {x: [1, 2]}\none: {<<: *b, y: 3}\ntwo: *b", "a.yaml")
    assert value["one"] == {"x": [1, 2], "y": 3} and value["two"] == {"x": [1, 2]}
    assert load_yaml("", "a.yaml") == (None, None)


def test_front_matter_of_a_skill_that_has_no_end_is_read_line_by_line(tmp_path):
    from benchflow_feature_standard.skills.folders import _front_matter

    assert _front_matter(f"---\nname: mine\n{BAD['bomb'][0]}\n---\ntext") == {"name": "mine"}
    with pytest.raises(ConfigurationError):
        load_yaml(BAD["bomb"][0], "SKILL.md")
