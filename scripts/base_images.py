"""The base images that examples and tests name, in the local engine: kept, else pulled, else made from this host.

A stand-in is what the host's own packages give under that name (`ubuntu:24.04` is Debian inside, `alpine:3.20` is
busybox with musl and no package manager), labelled `org.benchflow.stand-in`. An image of yours is never replaced.

    python scripts/base_images.py [--engine docker|podman] [--no-pull] [NAME ...]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from host_rootfs import Tree, unlinked, write_rootfs

ROOT = Path(__file__).parents[1]
LABEL = "org.benchflow.stand-in"
VERSION = "1"
"""Of the recipes below: a stand-in of another version is made again."""
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
TRUSTING = (
    "SSL_CERT_FILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
)
"""Tools that carry their own certificates would not trust a registry mirror that the host trusts."""
TRUST = "ENV " + " ".join(f"{name}={BUNDLE}" for name in TRUSTING)
DEBIAN = "debian:bookworm-slim"
NEXT = "trixie"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PYTHON = "3.12"
LEFT_OUT = {"__pycache__", "test", "tests", "idlelib", "tkinter", "turtledemo"}

engine = "docker"


def run(*args: str, stdin: IO[bytes] | None = None) -> None:
    """One engine command."""
    done = subprocess.run(
        [engine, *args],
        stdin=stdin or subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        raise SystemExit(
            f"base_images: {engine} {args[0]} failed: {done.stdout.decode(errors='replace').strip()[-2000:]}"
        )


def full(name: str) -> str:
    """Podman would put a short name under localhost/, where no FROM finds it."""
    owner = "" if "/" in name else "library/"
    return name if engine == "docker" else f"docker.io/{owner}{name}"


def label_of(name: str) -> str | None:
    """`None`: no such image. Empty: not ours."""
    argv = [engine, "image", "inspect", "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}', full(name)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip().replace("<no value>", "") if done.returncode == 0 else None


def pulled(name: str) -> bool:
    argv = [engine, "pull", "--quiet", full(name)]
    try:
        return subprocess.run(argv, capture_output=True, timeout=120, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def import_tar(name: str, write: Callable[[IO[bytes]], None], *changes: str) -> None:
    options = [part for change in (*changes, f"LABEL {LABEL}={VERSION}") for part in ("--change", change)]
    with tempfile.TemporaryFile() as tar:
        write(tar)
        tar.seek(0)
        run("import", *options, "-", full(name), stdin=tar)


def build_on(name: str, base: str, lines: str, write: Callable[[IO[bytes]], None] | None = None) -> None:
    """One more layer; what `write` gives as a tar is laid over /."""
    with tempfile.TemporaryFile() as layer, tempfile.TemporaryFile() as context:
        with tarfile.open(fileobj=context, mode="w") as tar:
            if write:
                write(layer)
                entry = tarfile.TarInfo("files.tar")
                entry.size = layer.tell()
                layer.seek(0)
                tar.addfile(entry, layer)
                lines = f"ADD files.tar /\n{lines}"
            text = f"FROM {full(base)}\n{lines}\nLABEL {LABEL}={VERSION}\n".encode()
            entry = tarfile.TarInfo("Dockerfile")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
        context.seek(0)
        os.environ["DOCKER_BUILDKIT"] = "0"  # FROM a local image, without asking a registry about it
        run("build", "--quiet", "--tag", full(name), "-", stdin=context)


def debian(name: str) -> None:
    import_tar(name, lambda out: write_rootfs(out, ("bash", "ca-certificates")), 'CMD ["bash"]', TRUST)


def same(name: str) -> None:
    run("tag", full(DEBIAN), full(name))


def same_python(name: str) -> None:
    run("tag", full("python:3.12-slim"), full(name))


def interpreter() -> Path | None:
    """The prefix of a private CPython, of the version asked for if there is one; None: only the system's."""
    own = Path(sys.base_prefix)
    found = [*sorted(own.parent.glob(f"{PYTHON}.*")), own]
    return next((p for p in found if p != Path("/usr") and (p / "bin/python3").exists()), None)


def libraries(prefix: Path) -> set[str]:
    """Of the host, that the interpreter's extension modules load."""
    modules = [str(path) for path in prefix.glob("lib/python3*/lib-dynload/*.so")]
    lines = subprocess.run(["ldd", *modules], capture_output=True, text=True, check=False).stdout.splitlines()
    found = {line.split()[2] for line in lines if " => /" in line and str(prefix) not in line}
    return {unlinked(path) for path in found if not Path(path).name.startswith(("libc.", "libm.", "libpthread", "ld-"))}


def python_tree(out: IO[bytes], prefix: Path) -> None:
    tree = Tree(out)
    for library in libraries(prefix):
        tree.copy(os.path.realpath(library), library)
    for root, folders, names in os.walk(prefix):
        folders[:] = [f for f in folders if f not in LEFT_OUT and not f.startswith("config-")]
        at = "/usr/local" + root[len(str(prefix)) :]
        tree.copy(root, at)
        for name in [*names, *(f for f in folders if Path(root, f).is_symlink())]:
            path = Path(root, name)
            if name.endswith((".a", ".pyc")):
                continue
            content = path.read_bytes() if root.endswith("/bin") and path.is_file() and not path.is_symlink() else b""
            if content.startswith(b"#!" + str(prefix).encode()):
                tree.write(f"{at}/{name}", content.replace(str(prefix).encode(), b"/usr/local", 1), 0o755)
            else:
                tree.copy(str(path), f"{at}/{name}")
    tree.link("/usr/local/bin/python", "python3")
    tree.tar.close()


def python(name: str) -> None:
    prefix = interpreter()
    if prefix is None:
        install = "apt-get update -qq && apt-get install -y -qq python3 python3-pip && ln -s python3 /usr/bin/python"
        build_on(name, DEBIAN, f"RUN {install}")
    else:
        build_on(name, DEBIAN, 'RUN ldconfig\nCMD ["python3"]', lambda out: python_tree(out, prefix))


@contextlib.contextmanager
def unpacked(*packages: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as work:
        fetch = ["apt-get", "download", "-qq", *packages]
        if subprocess.run(fetch, cwd=work, capture_output=True, check=False).returncode:
            subprocess.run(["apt-get", "update", "-qq"], check=False)
            subprocess.run(fetch, cwd=work, check=True)
        for deb in Path(work).glob("*.deb"):
            subprocess.run(["dpkg", "-x", deb, f"{work}/root"], check=True)
        yield Path(work, "root")


def newer(package: str, target: Path) -> None:
    """The same package from Debian's next release over the one that is there, which stays where it cannot be had."""
    sources = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    text = "\n".join(path.read_text() for path in sources if path.is_file())
    mirrors = re.findall(r"^(?:URIs:|deb(?: \[.*?\])?)\s+(\S+/debian)/?\s", text, re.MULTILINE)
    with tempfile.TemporaryDirectory() as work:
        for folder in ("lists/partial", "cache/archives/partial"):
            Path(work, folder).mkdir(parents=True)
        Path(work, "sources.list").write_text(
            f"deb [signed-by={KEYRING}] {mirrors[0] if mirrors else ''} {NEXT} main\n"
        )
        places = {"Etc::sourcelist": "sources.list", "State::lists": "lists", "Cache": "cache"}
        options = [part for name, place in places.items() for part in ("-o", f"Dir::{name}={work}/{place}")]
        apt = ["apt-get", "-qq", *options, "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Sandbox::User=root"]
        for command in (["update"], ["download", package]):
            subprocess.run([*apt, *command], cwd=work, capture_output=True, check=False)
        for deb in Path(work).glob("*.deb"):
            subprocess.run(["dpkg", "-x", deb, target], check=True)


def musl_tree(out: IO[bytes], root: Path) -> None:
    tree = Tree(out)
    for folder in (
        "bin",
        "sbin",
        "usr",
        "usr/bin",
        "usr/sbin",
        "lib",
        "etc",
        "home",
        "mnt",
        "opt",
        "run",
        "srv",
        "var",
    ):
        tree.folder(folder)
    for folder, mode in (("root", 0o700), ("tmp", 0o1777), ("var/tmp", 0o1777), ("proc", 0o555), ("sys", 0o555)):
        tree.folder(folder, mode)
    busybox = next(root.glob("**/bin/busybox"))
    tree.copy(str(busybox), "bin/busybox")
    for applet in subprocess.run([busybox, "--list-full"], capture_output=True, text=True, check=True).stdout.split():
        tree.link(applet, "/bin/busybox")
    loader = next(root.glob("**/ld-musl-*.so.1"))
    libc = loader if not loader.is_symlink() else next(root.glob("**/libc.so"))
    tree.copy(str(libc), f"lib/{loader.name}")
    tree.link(f"lib/libc.{loader.name.removeprefix('ld-').removesuffix('.so.1')}.so.1", loader.name)
    tree.write("etc/os-release", b'ID=alpine\nVERSION_ID=3.20.0\nPRETTY_NAME="Alpine Linux v3.20 (stand-in)"\n')
    tree.write("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n")
    tree.write("etc/group", b"root:x:0:\nnobody:x:65534:\n")
    tree.write("etc/shadow", b"root:*::0:::::\n", 0o640)
    tree.copy(BUNDLE, BUNDLE)
    tree.tar.close()


def alpine(name: str) -> None:
    with unpacked("busybox-static", "musl") as root:
        newer("musl", root)  # Alpine 3.20 has 1.2.5; packages that are built for it crash on Debian 12's 1.2.3
        import_tar(name, lambda out: musl_tree(out, root), 'CMD ["/bin/sh"]', TRUST)


def fedora(name: str) -> None:
    release = 'ID=fedora\\nVERSION_ID=40\\nPRETTY_NAME="Fedora Linux 40 (stand-in)"\\n'
    gone = "/usr/bin/apt* /usr/bin/dpkg* /usr/lib/apt /usr/lib/dpkg /var/lib/dpkg /var/lib/apt /etc/apt /etc/debian*"
    build_on(name, DEBIAN, f"RUN rm -rf {gone} /etc/os-release && printf '{release}' >/etc/os-release")


def workshop(name: str) -> None:
    """What the cheat suite (tests/verify) works with: a compiler, Python with pip, Perl, git, curl."""
    packages = (
        "bash",
        "ca-certificates",
        "python3",
        "python3-pip",
        "git",
        "curl",
        "gcc",
        "libc6-dev",
        "perl",
        "procps",
    )
    folders = " ".join(f"/usr/local/{folder}" for folder in ("bin", "sbin", "lib", "include", "share", "etc"))
    lines = f"RUN mkdir -p {folders} && cp /usr/share/base-files/profile /etc/profile && ldconfig"
    build_on(name, DEBIAN, lines, lambda out: write_rootfs(out, packages))


def claws(name: str) -> None:
    """What the ClawsBench tasks of the public documents are built from: every `claw-*` program, Python and curl."""
    packages = ("bash", "ca-certificates", "curl", "python3")
    build_on(name, DEBIAN, "RUN ldconfig", lambda out: write_rootfs(out, packages, claws_files))


def claws_files(tree: Tree) -> None:
    """The packages of this checkout, and what they require, from its environment."""
    packages = sorted((ROOT / "plugins" / "services").glob("claw-*"))
    sources = [(package, "benchflow_*") for package in packages]
    sites = (ROOT / ".venv").glob("lib/python3*/site-packages")
    sources += [(site, module) for site in sites for module in ("h11", "tzdata")]
    for folder, module in sources:
        for path in sorted(folder.glob(f"{module}/**/*")):
            if path.is_file() and "__pycache__" not in path.parts:
                tree.copy(str(path), f"/opt/claws/{path.relative_to(folder)}")
    for package in packages:
        scripts = tomllib.loads((package / "pyproject.toml").read_text())["project"].get("scripts", {})
        for program, point in scripts.items():
            module, _, function = point.partition(":")
            lines = (
                "#!/usr/bin/python3",
                "import sys",
                "sys.path.insert(0, '/opt/claws')",
                f"from {module} import {function}",
                f"sys.exit({function}())",
            )
            tree.write(f"/usr/local/bin/{program}", "\n".join(lines).encode() + b"\n", 0o755)


RECIPES: dict[str, Callable[[str], None]] = {
    DEBIAN: debian,
    "debian:12": same,
    "ubuntu:24.04": same,
    "python:3.12-slim": python,
    "python:3.12-slim-bookworm": same_python,
    "alpine:3.20": alpine,
    "fedora:40": fedora,
    "benchflow-workshop": workshop,
    "benchflow/claws-base": claws,
}
"""In this order: later ones build on earlier ones."""
OURS = ("benchflow-workshop", "benchflow/claws-base")
"""No registry has them, and they are made when they are named."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(RECIPES)}; all but our own if none is given"
    )
    parser.add_argument("--engine", default="docker", choices=("docker", "podman"))
    parser.add_argument("--no-pull", action="store_true", help="do not ask a registry")
    args = parser.parse_args()
    global engine
    engine = args.engine
    if unknown := sorted(set(args.names) - set(RECIPES)):
        parser.error(f"no recipe for {', '.join(unknown)}; there is one for {', '.join(RECIPES)}")
    registry = not args.no_pull
    for name, make in RECIPES.items():
        if name not in (args.names or set(RECIPES) - set(OURS)):
            continue
        began, label = time.monotonic(), label_of(name)
        how = "kept"
        if label is None and registry and name not in OURS:
            registry = pulled(name)
            how = "pulled" if registry else how
        if how == "kept" and (label is None or label not in ("", VERSION)):
            make(name)
            how = "stand-in made"
        print(f"{name:28} {how:14} {time.monotonic() - began:5.1f} s", flush=True)


if __name__ == "__main__":
    main()
