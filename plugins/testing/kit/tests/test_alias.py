"""`benchflow_core.testing`, where the kit was: its names still work, with a warning."""

from __future__ import annotations

import importlib

import benchflow_testing_kit as kit
import pytest


def test_every_name_of_the_kit_is_found_at_its_former_place():
    former = importlib.import_module("benchflow_core.testing")
    assert set(dir(former)) <= set(kit.__all__), "what is new has no former place"
    assert len(dir(former)) > 15
    for name in dir(former):
        with pytest.warns(DeprecationWarning, match=rf"benchflow_core\.testing\.{name} is now benchflow_testing_kit"):
            assert getattr(former, name) is getattr(kit, name)
    with pytest.raises(AttributeError):
        _ = former.nothing
