"""An API's facts (`contract.json`, made by scripts/contract.py): methods, parameters, scopes, types of messages.

With them every parameter, body and `fields=` of every method is checked the same way.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchflow_claw_kit.errors import ApiError, Dialect

__all__ = ["Contract", "load_contract"]

TYPES = {
    "string": "TYPE_STRING",
    "integer": "TYPE_INT32",
    "int64": "TYPE_INT64",
    "boolean": "TYPE_BOOL",
    "number": "TYPE_DOUBLE",
    "bytes": "TYPE_BYTES",
    "datetime": "TYPE_STRING",
    "date": "TYPE_STRING",
}
_LEGACY = {"integer": "Integer", "int64": "Long", "boolean": "Boolean", "number": "Double", "datetime": "DateTime"}
MAX_DEPTH = 60


class Contract:
    def __init__(self, data: Mapping[str, Any], dialect: Dialect) -> None:
        self.name: str = data["name"]
        self.version: str = data["version"]
        self.methods: Mapping[str, Mapping[str, Any]] = data["methods"]
        self.schemas: Mapping[str, Mapping[str, Any]] = data["schemas"]
        self.dialect = dialect

    # -- query parameters

    def parameter(self, name: str, kind: Any, values: list[str]) -> Any:
        if isinstance(kind, list):
            return [self.parameter(name, kind[0], [value]) for value in values]
        text = values[-1] if self.dialect == "legacy" else values[0]
        if isinstance(kind, dict):
            return self._constrained(name, kind, text)
        if kind in ("integer", "int64"):
            return self._integer(name, kind, text)
        if kind == "boolean":
            word = text.lower()
            if word not in ("true", "false", "1", "0", ""):
                raise self._bad_parameter(name, text, kind)
            return word in ("true", "1", "")
        return text

    def _constrained(self, name: str, kind: dict[str, Any], text: str) -> Any:
        if "enum" in kind:
            for word in kind["enum"]:
                if word == text or (self.dialect == "modern" and word.lower() == text.lower()):
                    return word
            raise self._bad_parameter(name, text, "enum", kind["enum"])
        low, high = kind["int"]
        value = self._integer(name, "integer", text)
        if (low is not None and value < int(low)) or (high is not None and value > int(high)):
            if self.dialect == "modern":
                raise self._bad_parameter(name, text, "integer")
            raise ApiError(
                400,
                f"Invalid value '{text}'. Values must be within the range: [{low}, {high}]",
                "invalidParameter",
                location=name,
            )
        return value

    def _integer(self, name: str, kind: str, text: str) -> int:
        limit = 2**63 if kind == "int64" else 2**31
        if re.fullmatch(r"[+-]?[0-9]{1,19}", text) and -limit <= int(text) < limit:
            return int(text)
        raise self._bad_parameter(name, text, kind)

    def _bad_parameter(self, name: str, text: str, kind: str, words: list[str] | None = None) -> ApiError:
        if self.dialect == "modern":
            return bad_field(snake(name), TYPES.get(kind, "TYPE_ENUM"), json.dumps(text, ensure_ascii=False))
        wanted = (
            f"Allowed values: [{', '.join(words)}]" if words else f"Value must be of type {_LEGACY.get(kind, kind)}"
        )
        return ApiError(400, f"Invalid value '{text}'. {wanted}", "invalidParameter", location=name)

    # -- bodies

    def body(self, schema: str, value: dict[str, Any]) -> dict[str, Any]:
        """The body with every field of its declared type; nulls are gone, unknown names refused or (legacy) dropped."""
        return self._message(self.schemas[schema], value, "", 0)

    def _message(self, fields: Mapping[str, Any], value: Any, at: str, depth: int) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._bad_value(at, "TYPE_MESSAGE", value)
        if depth > MAX_DEPTH:
            raise ApiError(
                400, "Invalid JSON payload received. Message too deep. Max recursion depth reached", "parseError"
            )
        known: dict[str, Any] = {}
        for name, item in value.items():
            kind = fields.get(name)
            if kind is None and self.dialect == "modern":
                kind = fields.get(name := _camel(name))
            if kind is None:
                kind = fields.get("*")
            if kind is None:
                if self.dialect == "legacy":
                    continue
                where = f" at '{at}'" if at else ""
                message = f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
                raise ApiError(400, message, "invalid", details=[_violation(at, message)])
            if item is not None:
                known[name] = self._field(kind, item, f"{at}.{snake(name)}" if at else snake(name), depth)
            elif self.dialect == "legacy":
                known[name] = None
        return known

    def _field(self, kind: Any, value: Any, at: str, depth: int) -> Any:
        if isinstance(kind, list):
            items = value if isinstance(value, list) else [value]
            return [self._field(kind[0], item, f"{at}[{i}]", depth) for i, item in enumerate(items)]
        if isinstance(kind, str) and kind.startswith("#"):
            return self._message(self.schemas[kind[1:]], value, at, depth + 1)
        if isinstance(kind, dict):
            if "enum" in kind and isinstance(kind["enum"], list):
                if value in kind["enum"]:
                    return value
                raise self._bad_value(at, "TYPE_ENUM", value)
            if "int" in kind and isinstance(kind["int"], list):
                return self._scalar("integer", value, at)
            return self._message(kind, value, at, depth + 1)
        return self._scalar(kind, value, at)

    def _scalar(self, kind: str, value: Any, at: str) -> Any:
        if kind == "any":
            return value
        if kind in ("string", "datetime", "date", "bytes"):
            if isinstance(value, str):
                return value if kind != "bytes" else self._base64(value, at)
            if self.dialect == "legacy" and isinstance(value, int | float) and not isinstance(value, bool):
                return str(value)
        elif kind == "boolean":
            if isinstance(value, bool):
                return value
            if value in ("true", "false"):
                return value == "true"
        elif isinstance(value, int | float | str) and not isinstance(value, bool):
            number = _number(value, kind)
            if number is not None:
                return number
        raise self._bad_value(at, TYPES.get(kind, "TYPE_MESSAGE"), value)

    def _base64(self, value: str, at: str) -> str:
        if re.fullmatch(r"[A-Za-z0-9_\-+/\s]*={0,2}\s*", value) is None:
            raise bad_field(at, "TYPE_BYTES", "Base64 decoding failed for " + json.dumps(value[:200]), prefix=True)
        return value

    def _bad_value(self, at: str, kind: str, value: Any) -> ApiError:
        if self.dialect == "modern":
            return bad_field(at, kind, json.dumps(value, ensure_ascii=False)[:300])
        return ApiError(400, f"Invalid value for: {at or 'body'}: {json.dumps(value)[:200]}", "invalid")

    # -- partial responses

    def check_mask(self, schema: str | None, mask: Mapping[str, Any], at: str = "") -> None:
        """Names that the answer cannot have are refused, as the real APIs do."""
        if schema is None or schema not in self.schemas:
            return
        self._check_mask(self.schemas[schema], mask)

    def _check_mask(self, fields: Mapping[str, Any], mask: Mapping[str, Any]) -> None:
        for name, below in mask.items():
            kind = fields.get(name, fields.get("*"))
            if name == "*":
                continue
            if kind is None:
                raise bad_mask(name, self.dialect)
            while isinstance(kind, list):
                kind = kind[0]
            if not below:
                continue
            if isinstance(kind, str) and kind.startswith("#"):
                self._check_mask(self.schemas[kind[1:]], below)
            elif isinstance(kind, dict) and not ({"enum", "int"} & kind.keys()):
                self._check_mask(kind, below)


def bad_mask(name: str, dialect: Dialect) -> ApiError:
    if dialect == "modern":
        message = f"Invalid field selection {name}"
        return ApiError(400, message, "invalidParameter", location="fields", details=[_violation("fields", message)])
    return ApiError(400, f"Invalid field selection {name}", "invalidParameter", location="fields")


def bad_field(at: str, kind: str, shown: str, prefix: bool = False) -> ApiError:
    message = f"Invalid value at '{at}' ({kind}), {shown}"
    return ApiError(400, message, "invalid", details=[_violation(at, message)])


def _violation(at: str, message: str) -> dict[str, Any]:
    return {
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        "fieldViolations": [{"field": at, "description": message}],
    }


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def _number(value: int | float | str, kind: str) -> Any:
    try:
        if kind == "number":
            number = float(value)
            return number if math.isfinite(number) else None
        if isinstance(value, float) and not value.is_integer():
            return None
        whole = int(value)
    except (ValueError, OverflowError):
        return None
    limit = 2**63 if kind == "int64" else 2**31
    if not -limit <= whole < 2 * limit:
        return None
    return str(whole) if kind == "int64" else whole


def load_contract(path: Path, dialect: Dialect) -> Contract:
    return Contract(json.loads(path.read_text()), dialect)


def decode_base64url(text: str) -> bytes | None:
    """As Google's APIs read it: either alphabet, padding optional. None if it is not base64."""
    clean = re.sub(r"\s+", "", text).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(clean + "=" * (-len(clean) % 4), validate=True)
    except (ValueError, binascii.Error):
        return None
