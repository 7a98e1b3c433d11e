"""As much of the original's interface as our program uses."""

from dataclasses import dataclass
from pathlib import Path

WORKSPACE_PATH, DOCUMENTS_PATH, OUTPUT_PATH = "/workspace", "/workspace/documents", "/workspace/output"


@dataclass
class ExecResult:
    stdout: str
    stderr: str
    returncode: int | None
    timed_out: bool = False


class Sandbox:
    def __init__(self, documents_dir, output_dir, workspace_dir, *, extra_env=None, default_timeout=60):
        self.documents_dir, self.output_dir = Path(documents_dir).resolve(), Path(output_dir).resolve()
        self.workspace_dir = Path(workspace_dir).resolve()
        self.extra_env, self.default_timeout = dict(extra_env or {}), default_timeout

    def start(self):
        raise RuntimeError("the original starts a container here")

    def _to_host(self, path):
        for root, folder in ((DOCUMENTS_PATH, self.documents_dir), (OUTPUT_PATH, self.output_dir)):
            if path == root or path.startswith(f"{root}/"):
                return folder / path[len(root) :].lstrip("/")
        return self.workspace_dir / path.removeprefix(WORKSPACE_PATH).lstrip("/")

    def write_file(self, path, content):
        target = self._to_host(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
