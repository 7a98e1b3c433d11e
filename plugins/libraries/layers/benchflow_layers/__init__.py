"""Agents that come as packages: layers that put a pinned Node or Python and the agent's packages into a box."""

from __future__ import annotations

from benchflow_layers.npm import NODE, NODE_LAYER, NODE_VERSION, npm_layers
from benchflow_layers.pip import PYTHON, PYTHON_LAYER, PYTHON_VERSION, pip_layers
from benchflow_layers.versions import version_check

__all__ = [
    "NODE",
    "NODE_LAYER",
    "NODE_VERSION",
    "PYTHON",
    "PYTHON_LAYER",
    "PYTHON_VERSION",
    "npm_layers",
    "pip_layers",
    "version_check",
]
