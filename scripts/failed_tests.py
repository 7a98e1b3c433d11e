"""What failed in the last run of pytest, a test a line: failed_tests.py CACHE_DIR MOST

Exits with 1, and lists nothing, where pytest left no list (it did not get as far) or more than MOST failed. The tests
of one file count as five at most: what they share may be what failed.
"""

import json
import sys
from collections import Counter
from pathlib import Path


def failed(cache: Path) -> list[str]:
    """As pytest takes them: without the group that xdist puts behind a name."""
    found = json.loads((cache / "v/cache/lastfailed").read_text())
    cut = {name.rpartition("@")[0] if "@" in name.rpartition("]")[2] else name for name in found}
    return sorted(cut)


if __name__ == "__main__":
    try:
        names = failed(Path(sys.argv[1]))
    except FileNotFoundError:
        sys.exit("failed_tests: pytest left no list of what failed")
    files = Counter(name.partition("::")[0] for name in names)
    if sum(min(5, number) for number in files.values()) > int(sys.argv[2]):
        sys.exit(f"failed_tests: {len(names)} tests failed, too many for a second try")
    print("\n".join(names))
