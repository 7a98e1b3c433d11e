"""Where the account is and how boxes are made: from the environment or Modal's own file, and `--sandbox-option`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from benchflow_boxkit.options import COMMON, Credentials, Options, with_login
from benchflow_boxkit.sizes import BoxSize, Catalogue, Quantity, size_options

from benchflow_core.contracts.quick import dataclass

__all__ = ["OPTIONS", "ModalSettings", "credentials", "gpu_of", "read_settings"]

DEFAULT_URL: Final = "https://api.modal.com"
_SIZES: Final = (
    Quantity("cpus", "cpus", "cores", 2, 64, least=0.125),
    Quantity("memory_mb", "memory_mb", "MB of memory", 4096, 344064, least=128),
)
OPTIONS: Final = {
    "app": "the Modal app that boxes belong to (benchflow)",
    "environment": "the Modal environment, instead of MODAL_ENVIRONMENT",
    "region": "regions that boxes may be in, with commas between",
    "cloud": "the cloud provider",
    **size_options(_SIZES),
    "idle_minutes": "after which a box of a dead host ends itself (30)",
    **COMMON,
}
_TOKEN: Final = ("MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET")
_FILE_NAMES: Final = ("token_id", "token_secret", "server_url", "environment")
_GPU: Final = "T4"


@dataclass(frozen=True, slots=True)
class ModalSettings:
    place: str
    """The API's address."""
    token: str = field(repr=False)
    secret: str = field(repr=False)
    environment: str | None
    app: str
    regions: tuple[str, ...]
    cloud: str | None
    sizes: Catalogue
    idle_seconds: float
    creates_at_once: int
    create_tries: int

    @classmethod
    def of(cls, env: Mapping[str, str], options: Mapping[str, str] | None = None) -> ModalSettings:
        given = Options(options, OPTIONS, "Modal")
        found = credentials(env)
        values = found.require()
        return cls(
            place=found.place,
            token=values["MODAL_TOKEN_ID"],
            secret=values["MODAL_TOKEN_SECRET"],
            environment=given.word("environment") or values.get("MODAL_ENVIRONMENT"),
            app=given.word("app") or "benchflow",
            regions=given.words("region"),
            cloud=given.word("cloud"),
            sizes=Catalogue("Modal", _SIZES, given, gpus=True),
            idle_seconds=given.number("idle_minutes", 30, most=24 * 60) * 60,
            **given.pace,
        )


def credentials(env: Mapping[str, str]) -> Credentials:
    """Read them as Modal's own command does: the environment, then the profile of its file that is chosen or active."""

    def profile(text: str) -> dict[str, str | None]:
        data: dict[str, Any] = tomllib.loads(text)
        profiles = {name: row for name, row in data.items() if isinstance(row, dict)}
        active = next((name for name, row in profiles.items() if row.get("active")), "default")
        row = profiles.get(env.get("MODAL_PROFILE") or active, {})
        return {f"MODAL_{name.upper()}": row.get(name) for name in _FILE_NAMES}

    values = with_login(env, env.get("MODAL_CONFIG_PATH") or ".modal.toml", profile)
    missing = [name for name in _TOKEN if not values.get(name)]
    verb = "are" if len(missing) == 2 else "is"
    return Credentials(
        "Modal",
        values,
        values.get("MODAL_SERVER_URL") or DEFAULT_URL,
        f"{' and '.join(missing)} {verb} not set" if missing else "",
        "Run modal token new, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET.",
    )


def gpu_of(size: BoxSize) -> tuple[str | None, tuple[str, ...]]:
    """Return the SDK's word for a box's GPUs, and notices."""
    if not size.gpus:
        return None, ()
    kind = size.gpu_types[0] if size.gpu_types else _GPU
    notices: tuple[str, ...] = ()
    if not size.gpu_types:
        notices = (f"gpus = {size.gpus} of no named kind: the box gets {_GPU}.",)
    elif len(size.gpu_types) > 1:
        notices = (f"Modal's sandboxes take one kind of GPU: the box gets {kind}.",)
    return f"{kind}:{size.gpus}", notices


read_settings = ModalSettings.of
"""What the spec of a cloud asks for by this name."""
