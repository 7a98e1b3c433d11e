"""What a spec names by a dotted path: found, or said with what to install."""

from __future__ import annotations

import sys

import pytest

from benchflow_core.errors import PluginError
from benchflow_core.plugins.dotted import resolve

WHO = "agent 'mine' of my-agents 1.0"


def test_it_is_imported():
    assert resolve("os.path:join", WHO)("a", "b") == "a/b"


def test_a_package_that_is_missing_is_named_with_what_to_install():
    with pytest.raises(PluginError, match=r"agent .mine. of my-agents 1\.0 needs benchflow-nowhere") as error:
        resolve("benchflow_nowhere.client:open_session", WHO)
    assert error.value.remedy == "Run: pip install benchflow-nowhere"


def test_a_module_that_misses_another_is_not_the_missing_one(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import absent_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError, match="half_there:open, which misses the module 'absent_dependency'"):
        resolve("half_there:open", WHO)
    sys.modules.pop("half_there", None)


@pytest.mark.parametrize("path", ["os.path:nothing", "os.path", ":", ""])
def test_a_path_that_leads_nowhere_is_said_with_its_plugin(path):
    with pytest.raises(PluginError, match=WHO):
        resolve(path, WHO)
