"""The reviewer, under the name of the older documents: `pip install benchflow-service-reviewer`."""

from __future__ import annotations

from benchflow_service_reviewer.review import Review, Reviewer
from benchflow_service_reviewer.server import build_server, serve

__all__ = ["Review", "Reviewer", "build_server", "serve"]
