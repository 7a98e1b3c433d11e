"""YAML as plain data that still knows its line numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchflow_core.contracts.bounded_yaml import check_yaml
from benchflow_core.errors import ConfigurationError

__all__ = ["Tree", "read_yaml"]


@dataclass(frozen=True)
class Tree:
    source: str
    data: Any
    lines: dict[tuple[Any, ...], int]

    def line(self, path: tuple[Any, ...]) -> int:
        """Of the nearest thing on the way to `path`."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str, source: str) -> Tree:
    import yaml

    class Loader(yaml.SafeLoader):
        """Dates stay text: a script has no use for them."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    lines: dict[tuple[Any, ...], int] = {}

    def plain(loader: Any, node: Any, path: tuple[Any, ...]) -> Any:
        lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            return [plain(loader, item, (*path, i)) for i, item in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return loader.construct_object(node)
        loader.flatten_mapping(node)
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = plain(loader, key_node, (*path, f"\0{len(found)}"))
            line = key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise ConfigurationError(f"{source}:{line}: the key {key!r} is not text; put it in quotes.")
            if key in found:
                raise ConfigurationError(f"{source}:{line}: the key '{key}' is given twice.")
            lines[(*path, key)] = line
            found[key] = plain(loader, value_node, (*path, key))
        return found

    try:
        loader = Loader(text)
        node = loader.get_single_node()
        if node is not None:
            check_yaml(node, source)
        return Tree(source, plain(loader, node, ()) if node is not None else None, lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise ConfigurationError(f"{source}:{mark.line + 1 if mark else 1}: not YAML: {error.problem}.") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigurationError(f"{source}: not YAML: {str(error).splitlines()[0]}.") from None
