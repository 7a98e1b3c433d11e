"""Facts of an API, taken from the discovery document that google-api-python-client bundles, as a small `contract.json`.

python scripts/contract.py gmail v1 ../claw-gmail/benchflow_service_claw_gmail/contract.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PREFIX = "https://www.googleapis.com/auth/"


def document(name: str, version: str) -> dict[str, Any]:
    import googleapiclient

    folder = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
    value: dict[str, Any] = json.loads((folder / f"{name}.{version}.json").read_text())
    return value


def methods(node: dict[str, Any]) -> list[dict[str, Any]]:
    found = list(node.get("methods", {}).values())
    for child in node.get("resources", {}).values():
        found += methods(child)
    return found


def kind(spec: dict[str, Any]) -> Any:
    if spec.get("repeated"):
        return [kind({**spec, "repeated": False})]
    if "$ref" in spec:
        return "#" + spec["$ref"]
    if spec.get("type") == "array":
        return [kind(spec["items"])]
    if spec.get("type") == "object":
        if "additionalProperties" in spec:
            return {"*": kind(spec["additionalProperties"])}
        return fields(spec)
    if "enum" in spec:
        return {"enum": spec["enum"]}
    word = spec.get("type", "any")
    if word == "integer" and ("minimum" in spec or "maximum" in spec):
        return {"int": [spec.get("minimum"), spec.get("maximum")]}
    return {"int64": "int64", "uint64": "int64", "date-time": "datetime", "date": "date", "byte": "bytes"}.get(
        spec.get("format", ""), word
    )


def fields(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: kind(spec) for name, spec in schema.get("properties", {}).items()}


def schema_fields(schema: dict[str, Any]) -> Any:
    known = fields(schema)
    if "additionalProperties" in schema:
        known["*"] = kind(schema["additionalProperties"])
    return known


def entry(doc: dict[str, Any], method: dict[str, Any]) -> dict[str, Any]:
    parameters = method.get("parameters", {})
    query = {name: spec for name, spec in parameters.items() if spec["location"] == "query"}
    path = method.get("flatPath", method["path"])
    value: dict[str, Any] = {
        "verb": method["httpMethod"],
        "path": "/" + doc["servicePath"] + path.replace("{+", "{"),
        "scopes": [scope.removeprefix(PREFIX) for scope in method.get("scopes", [])],
    }
    if query:
        value["query"] = {
            name: kind({k: v for k, v in spec.items() if k != "location"}) for name, spec in query.items()
        }
        value["required"] = [name for name, spec in query.items() if spec.get("required")]
    if "request" in method:
        value["request"] = method["request"]["$ref"]
    if "response" in method:
        value["response"] = method["response"]["$ref"]
    if method.get("supportsMediaUpload"):
        value["upload"] = int(method["mediaUpload"].get("maxSize", 0)) or None
    if method.get("supportsMediaDownload"):
        value["media"] = True
    return value


def contract(name: str, version: str) -> dict[str, Any]:
    doc = document(name, version)
    return {
        "name": doc["name"],
        "version": doc["version"],
        "revision": doc["revision"],
        "methods": {method["id"]: entry(doc, method) for method in methods(doc)},
        "schemas": {ref: schema_fields(schema) for ref, schema in doc["schemas"].items()},
    }


def main() -> None:
    name, version, out = sys.argv[1:4]
    lines = json.dumps(contract(name, version), indent=None, separators=(",", ":"), sort_keys=True)
    Path(out).write_text(lines.replace('"},"', '"},\n"') + "\n")


if __name__ == "__main__":
    main()
