"""Entering control groups."""

from __future__ import annotations

import os
import time


def join(folders: list[str]) -> None:
    """This process, by whatever number each hierarchy knows it."""
    for folder in folders:
        with open(os.path.join(folder, "cgroup.procs"), "w") as file:
            file.write("0")


def remove(folders: list[str]) -> None:
    """The kernel may take a moment to notice that the last process is gone."""
    for folder in folders:
        for _ in range(50):
            try:
                os.rmdir(folder)
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.01)
