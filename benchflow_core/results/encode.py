"""JSON text, many small pieces of it per rollout."""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from typing import Any

__all__ = ["encoder"]


def encoder(*, compact: bool = False, allow_nan: bool = True) -> Callable[[Any], str]:
    """What `json.JSONEncoder(ensure_ascii=False, default=str).encode` does.

    That one makes a new encoder in C for every call, which costs several times what most of our values do.
    """
    item, key = (",", ":") if compact else (", ", ": ")
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        plain = json.JSONEncoder(ensure_ascii=False, allow_nan=allow_nan, default=str, separators=(item, key))
        return plain.encode
    pieces = make(None, str, json.encoder.encode_basestring, None, key, item, False, False, allow_nan)
    return lambda value: "".join(pieces(value, 0))
