"""Writes the pins of Python anew: `python scripts/pin_python.py MIRROR`, the base URL of a Debian mirror.

Run it when a package was replaced by a newer one (a point release removes the old), then run the agents' tests.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
import urllib.request
from pathlib import Path

RELEASE = "trixie"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
PACKAGES = (
    *("python3.13-minimal", "libpython3.13-minimal", "libpython3.13-stdlib", "libc6", "libgcc-s1", "libstdc++6"),
    *("libssl3t64", "zlib1g", "libexpat1", "libbz2-1.0", "libffi8", "liblzma5", "libncursesw6", "libtinfo6"),
    *("libreadline8t64", "libsqlite3-0", "libuuid1", "libzstd1"),
)
TARGET = Path(__file__).parents[1] / "benchflow_core" / "contracts" / "pip" / "packages.json"


def pins(mirror: str, architecture: str) -> list[list[str]]:
    url = f"{mirror}/dists/{RELEASE}/main/binary-{architecture}/Packages.xz"
    with urllib.request.urlopen(url) as answer:
        index = lzma.decompress(answer.read()).decode()
    found = {}
    for entry in index.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Filename|SHA256): (.+)$", entry, re.MULTILINE))
        if fields.get("Package") in PACKAGES:
            found[fields["Package"]] = [fields["Filename"], fields["SHA256"]]
    return [found[name] for name in PACKAGES]


def main() -> None:
    mirror = sys.argv[1].rstrip("/")
    rows = []
    for machine, architecture in MACHINES.items():
        lines = ",\n".join(f"    {json.dumps(pin)}" for pin in pins(mirror, architecture))
        rows.append(f'  "{machine}": [\n{lines}\n  ]')
    TARGET.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
