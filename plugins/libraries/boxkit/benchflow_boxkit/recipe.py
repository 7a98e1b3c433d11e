"""From what a task asks for to one Dockerfile with one context, which a vendor builds in its own way.

Into the task's own Dockerfile come the supervisor with its Python, and at its end what is known about the image and the
agents' layers. The key covers all of it: equal requests are one image.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from benchflow_boxkit import context as contexts
from benchflow_boxkit import dockerfile, layering, package
from benchflow_boxkit.build_folder import BOX, OWN, guarded, takes_along
from benchflow_boxkit.package import HOME, INSTALL, PYTHON, RECORD
from benchflow_core.contracts.common import Layer
from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.errors import CapabilityMissing, ConfigurationError, TaskError

__all__ = ["DOCKERFILE", "Recipe", "compose", "text_of"]

DOCKERFILE: Final = f"{OWN}/Dockerfile"
"""In a context that was written."""
_BIN: Final = str(PurePosixPath(PYTHON).parent)


@dataclass(frozen=True, slots=True)
class Recipe:
    """An image to be: `write` makes the folder that a vendor builds."""

    key: str
    name: str
    """The image or Dockerfile, for messages."""
    text: str
    """The whole Dockerfile."""
    context: contexts.Context | None
    layers: tuple[Layer, ...]
    settings: Mapping[str, str]
    timeout: float
    substituted: str = ""
    """What stands in for what was asked for, where something does."""
    numbers: tuple[int, ...] = ()
    """The line in the task's own Dockerfile, for each line of the text that comes from there."""

    def write(self, folder: Path, cache: Path) -> None:
        """The context, with the Dockerfile in it as `DOCKERFILE`: the task's own stays what it is."""
        folder.mkdir(parents=True)
        if self.context is not None:
            _copy(self.context, folder)
        own = folder / OWN
        shutil.copytree(package.tree(cache), folder / BOX, copy_function=_link)
        for number, layer in enumerate(self.layers):
            _write_layer(own, number, layer, self.settings)
        (folder / DOCKERFILE).write_text(self.text)
        (folder / ".dockerignore").unlink(missing_ok=True)


def compose(request: ImageRequest, layers: Sequence[Layer], env: Mapping[str, str]) -> Recipe:
    """Reads the task's files; writes nothing."""
    if request.compose is not None:
        raise CapabilityMissing("Compose files are not supported here.", remedy="Use a sandbox with compose.")
    source, context, name, substituted = _source(request)
    key = hashlib.sha256(contexts.key(context, source, request).encode() if context else source.encode())
    key.update(package.identity().encode())
    for layer in layers:
        layering.prefix_of(layer, HOME)
        key.update(layering.digest(layer).encode())
    text, numbers = guarded(source)
    text += _ending(request.target, layers, *(["clean"] if takes_along(source) else []))
    return Recipe(
        key.hexdigest()[:24],
        name,
        text,
        context,
        tuple(layers),
        layering.indexes(env),
        request.timeout,
        substituted,
        numbers,
    )


def text_of(request: ImageRequest) -> str:
    """The task's own part of the Dockerfile, as it will be built: with arguments and another base put in."""
    return _source(request)[0] + (f"FROM {request.target}\n" if request.target else "")


def _source(request: ImageRequest) -> tuple[str, contexts.Context | None, str, str]:
    if request.dockerfile is None:
        image = request.base_override or request.image
        if not image:
            raise ConfigurationError(
                "The task names no image and has no Dockerfile.",
                remedy="Add environment/Dockerfile or docker_image to the task, or give --base-image-override.",
            )
        if not re.fullmatch(r"[A-Za-z0-9][\w.\-/:@]*", image):
            raise TaskError(f"{image!r} is not the name of an image.")
        swapped = request.image is not None and image != request.image
        platform = f"--platform={request.platform} " if request.platform else ""
        said = f"image {request.image} substituted by {image}" if swapped else ""
        return f"FROM {platform}{image}\n", None, image, said
    path = request.dockerfile
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read as text: {error}.") from error
    recipe = dockerfile.with_arguments(dockerfile.parse(text, path.name), request.build_args)
    said = ""
    if request.base_override:
        recipe = dockerfile.override(recipe, request.base_override)
        said = f"{path.name}: every FROM substituted by {request.base_override}"
    return recipe.text, contexts.Context.of(request.context or path.parent, path), str(path), said


def _ending(target: str | None, layers: Sequence[Layer], *more: str) -> str:
    """`more`: what is done besides, as root."""
    run = json.dumps
    lines = [f"FROM {target}", f"COPY {BOX} {HOME}"] if target else []
    lines += [f"RUN {run(RECORD)}", "USER root", f"RUN {run([*RECORD, 'keep', *more])}"]
    for number, layer in enumerate(layers):
        if layer.files:
            lines.append(f"COPY {run([f'{OWN}/files/{number}/', f'{os.path.normpath(layer.prefix)}/'])}")
        place = f"{HOME}/layers/{number}.json"
        lines += [f"COPY {OWN}/layers/{number}.json {place}", f"RUN {run([*INSTALL, place])}"]
    return "\n".join(lines) + "\n"


def _write_layer(own: Path, number: int, layer: Layer, settings: Mapping[str, str]) -> None:
    for name, data in layer.files.items():
        path = own / "files" / str(number) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if data.startswith(b"#!") else 0o644)
    given = dict(layer.env)
    path_ = f"{given.pop('PATH')}:{_BIN}" if "PATH" in given else f"{_BIN}:{{PATH}}"
    found: dict[str, Any] = {
        "key": layer.key,
        "prefix": os.path.normpath(layer.prefix),
        "install": layer.install,
        "env": {**settings, **given},
        "path": path_,
        "timeout": layer.timeout,
    }
    (own / "layers").mkdir(exist_ok=True)
    (own / "layers" / f"{number}.json").write_text(json.dumps(found))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _copy(context: contexts.Context, folder: Path) -> None:
    for relative, path, info in list(context.entries()):
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISDIR(info.st_mode):
            target.mkdir(exist_ok=True)
        elif stat.S_ISLNK(info.st_mode):
            target.symlink_to(path.readlink())
        else:
            shutil.copy2(path, target)
