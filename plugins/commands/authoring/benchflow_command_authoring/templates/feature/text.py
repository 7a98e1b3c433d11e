"""What the feature plans, and what it does while a rollout lives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchflow_core.contracts import FeatureBox, FeaturePlan, FeatureRun, PlanView, RunView
from benchflow_core.errors import ConfigurationError

from {{module}}.settings import TextSettings

PLACE = "/{{name}}.txt"


@dataclass(frozen=True, kw_only=True)
class TextPlan(FeaturePlan):
    text: str

    def open(self, run: RunView) -> TextRun:
        return TextRun(self, run)


def plan(settings: TextSettings, view: PlanView) -> TextPlan | None:
    """Read the text. What cannot work is refused here, before anything starts."""
    if settings.{{identifier}} is None:
        return None
    try:
        text = Path(settings.{{identifier}}).read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"{settings.{{identifier}}} cannot be read: {error.strerror}.") from error
    return TextPlan(text=text, note=f"\n\nRead {PLACE} before you begin.")


class TextRun(FeatureRun):
    def __init__(self, planned: TextPlan, run: RunView) -> None:
        self._plan, self._run = planned, run

    @asynccontextmanager
    async def agent(self, box: FeatureBox) -> AsyncIterator[None]:
        """Bring the text when agents come, once per step, and take it away when they are done."""
        source = self._run.dir / "{{name}}.txt"
        source.write_text(self._plan.text, "utf-8")
        await box.sandbox.upload(source, PLACE, mode=0o644)
        try:
            yield
        finally:
            await box.sandbox.exec(("rm", "-f", PLACE), user="root", cwd="/")

    def result(self) -> Mapping[str, Any]:
        return {"{{identifier}}_characters": len(self._plan.text)}
