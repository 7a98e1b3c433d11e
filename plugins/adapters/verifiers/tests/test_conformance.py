from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchflow_adapter_verifiers.plugin import FILE, benchflow_source
from benchflow_adapter_verifiers.task import load_task
from benchflow_testing_kit import AdapterConformance

from benchflow_core.contracts import SourceRequest
from benchflow_core.errors import ConfigurationError

SPEC = {"id": "sums", "package": None, "local": True, "digest": "0", "generation": "0.4", "allow_env": []}
TASK = {"data": {"prompt": "1+1?"}, "instruction": "1+1?", "timeout": {"agent": 60}, "resources": {"memory": 1}}


def write(folder: Path, **more: object) -> Path:
    folder.mkdir()
    data = {"spec": SPEC, "tools": ["shop"], "seats": ["agent"], "version": "0.4.0", "task": {**TASK, **more}}
    (folder / FILE).write_text(json.dumps(data))
    return folder


class TestAdapter(AdapterConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "primeintellect"

    @pytest.fixture
    def good_tasks(self, tmp_path: Path) -> list[Path]:
        return [write(tmp_path / "one")]

    @pytest.fixture
    def bad_tasks(self, tmp_path: Path) -> list[Path]:
        (tmp_path / "cut").mkdir()
        (tmp_path / "cut" / FILE).write_text('{"spec": ')
        return [
            tmp_path / "cut",
            write(tmp_path / "blocks", allow=["*"], block=["a.example"]),
            write(tmp_path / "s", skills=2),
        ]


def test_what_a_task_asks_for_is_kept(tmp_path: Path) -> None:
    task = load_task(write(tmp_path / "one", image="img:1", allow=["a.example"], resources={"cpu": 2, "gpu": "A100:2"}))
    box = task.environment
    assert (box.image, box.allow_substitute, box.network.allowed_hosts) == ("img:1", False, ("a.example",))
    assert (box.resources.cpus, box.resources.gpus, box.resources.gpu_types) == (2, 2, ("A100",))
    assert [(one.name, one.url) for one in box.mcp_servers] == [("shop", "http://127.0.0.1:8450/shop")]
    assert task.drive == {"loop": "primeintellect"} and task.agent_timeout == 660


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("./nowhere.py", "does not exist"),
        ("{file}?limit=none", "limit=none is no number of tasks"),
        ("{file}?verifiers=9", "verifiers=9 is none of 0.4, 0.3"),
        ("{text}", "is no module"),
        ("-rf", "names no environment"),
    ],
)
def test_an_address_that_means_nothing_is_refused_before_anything_runs(tmp_path: Path, address: str, said: str) -> None:
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "a.py").write_text("")
    uri = "env:primeintellect/" + address.format(file=tmp_path / "a.py", text=tmp_path / "a.txt")
    with pytest.raises(ConfigurationError, match=said):
        benchflow_source().fetch(SourceRequest(uri, cache_dir=tmp_path / "cache"))
    left = list((tmp_path / "cache").rglob("*")) if (tmp_path / "cache").exists() else []
    assert left == []
