"""Where agents look for skills in their box."""

from __future__ import annotations

from collections.abc import Mapping

from benchflow_core.contracts import FeatureBox, LoadedPlugin

__all__ = ["all_places", "place_of", "places"]


def places(box: FeatureBox, agents: Mapping[str, LoadedPlugin]) -> list[str]:
    """Return one place per agent: in its home where it looks there, so that the working directory stays the task's."""
    found = [place_of(agent, box.home_of(role), box.workdir) for role, agent in agents.items()]
    return list(dict.fromkeys(place for place in found if place))


def all_places(box: FeatureBox, agents: Mapping[str, LoadedPlugin]) -> list[str]:
    """Return every place below the user's home, or the working directory, where one of the agents looks."""
    paths = [path for agent in agents.values() for path in agent.spec.skill_paths]
    return list(dict.fromkeys(_absolute(path, box.home, box.workdir) for path in paths))


def place_of(agent: LoadedPlugin, home: str, workdir: str) -> str | None:
    """Return an agent's first place, rather in its home; none where it looks nowhere."""
    paths = sorted(agent.spec.skill_paths, key=lambda path: not path.startswith("~"))
    return _absolute(paths[0], home, workdir) if paths else None


def _absolute(path: str, home: str, workdir: str) -> str:
    if path.startswith("~"):
        return home.rstrip("/") + path[1:]
    return path if path.startswith("/") else f"{workdir.rstrip('/')}/{path}"
