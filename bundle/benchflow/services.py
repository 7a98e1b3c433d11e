"""Services by name, for Python programs: those of installed plugins, and those that the program registered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchflow_feature_world import services
from benchflow_feature_world.services import Service, ServiceHook, known_services, register_service, service_of

from benchflow_core.plugins import registry

__all__ = ["SERVICES", "build_service_hooks", "detect_services_from_dockerfile", "register_service"]


class _Services(Mapping[str, Service]):
    """`benchflow.SERVICES`: looked up when asked for, so that importing costs nothing."""

    def _all(self) -> dict[str, Service]:
        return known_services(registry())

    def __getitem__(self, name: str) -> Service:
        found = self._all()
        if name not in found:
            raise KeyError(f"{name}; known: {', '.join(sorted(found))}")
        return found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


SERVICES: Final[Mapping[str, Service]] = _Services()


def detect_services_from_dockerfile(
    dockerfile: str | Path | None, services_by_name: Mapping[str, Service] | None = None
) -> list[Service]:
    """Return the services whose program a Dockerfile names. A path, or the text itself."""
    return services.detect_services_from_dockerfile(dockerfile, services_by_name or SERVICES)


def build_service_hooks(wanted: Sequence[Service | str]) -> list[ServiceHook]:
    """Return hooks for `pre_agent_hooks`, one for each service."""
    return [ServiceHook(service_of(service, registry())) for service in wanted]
