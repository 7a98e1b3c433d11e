"""A driver's parameters have the type of its defaults, from wherever they come."""

from __future__ import annotations

import pytest

from benchflow_core.errors import ConfigurationError
from benchflow_core.settings.words import driver_params

KNOWN = {"k": 3, "bar": 1.0, "quick": False, "feedback": "names"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"k": [1]}, r"k=\[1\] is not a whole number"),
        ({"k": 2.5}, "k=2.5 is not a whole number"),
        ({"k": True}, "k=True is not a whole number"),
        ({"bar": "high"}, "bar=high is not a number"),
        ({"quick": 1}, "quick=1 is not true or false"),
        ({"feedback": None}, "feedback=None is not text"),
    ],
)
def test_what_has_another_type_is_refused(given, why):
    with pytest.raises(ConfigurationError, match=why):
        driver_params("some", KNOWN, given)


def test_what_fits_is_taken():
    found = driver_params("some:k=2,quick=yes", KNOWN, {"bar": 2, "feedback": "raw"})
    assert found == {"k": 2, "bar": 2, "quick": True, "feedback": "raw"}
