"""Reading compose files: what is understood, and what is refused by name, with file and line. No engine is needed."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from benchflow_core.contracts import ImageRequest
from benchflow_core.errors import TaskError
from benchflow_sandbox_docker.compose.document import ComposeDocument
from benchflow_sandbox_docker.compose.model import Project
from benchflow_sandbox_docker.compose.project import read_project, variables
from benchflow_sandbox_docker.plugin import benchflow_sandbox

Read = Callable[..., Project]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    folder = tmp_path / "task" / "environment"
    folder.mkdir(parents=True)

    def read_(text: str, lenient: bool = False, env: dict[str, str] | None = None) -> Project:
        document = ComposeDocument(textwrap.dedent(text), "docker-compose.yaml")
        return read_project(document, folder, folder.parent, variables(env or {}), lenient=lenient)

    return read_


@pytest.fixture
def folder(read: Read, tmp_path: Path) -> Path:
    return tmp_path / "task" / "environment"


def test_what_the_run_would_refuse_is_refused_while_planning(folder: Path) -> None:
    file = folder / "docker-compose.yaml"
    (folder / "Dockerfile").write_text("FROM x\n")
    asked = ImageRequest(context=folder, compose=file)
    file.write_text("services:\n  main:\n    build: .\n")
    benchflow_sandbox().refuse({}, {}, asked)
    file.write_text("services:\n  main:\n    build: .\n    privileged: true\n")
    with pytest.raises(TaskError, match=r"docker-compose\.yaml:4: 'privileged' of service 'main' is refused"):
        benchflow_sandbox().refuse({}, {}, asked)


def test_a_usual_file(read: Read, folder: Path) -> None:
    (folder / "web").mkdir()
    (folder / "web" / "Dockerfile").write_text("FROM x\n")
    (folder / "seed").mkdir()
    (folder / "vars").write_text("# a comment\nexport A='one two'\nB=2\n")
    project = read(
        """
        services:
          main:
            depends_on: {web: {condition: service_healthy}, once: {condition: service_completed_successfully}}
            env_file: vars
            environment: [B=3, "C=$$x ${WHO:-you}"]
            volumes: ["./seed:/data:ro", "shared:/shared"]
            deploy: {resources: {limits: {cpus: "1.5", memory: 512M}}}
          web:
            build: {context: ./web, args: {V: 1}}
            command: python -m http.server "80 80"
            healthcheck: {test: [CMD, wget, -q, localhost], interval: 1m30s, retries: 2}
            ports: ["8080:80", {target: 443}]
            networks: {default: {aliases: [site]}}
            volumes: ["shared:/srv"]
            cap_add: [sys_ptrace, sys_nice]
            tmpfs: /run:size=1m,suid
          once: {image: a, command: [], user: 7}
          never: {image: b, profiles: [extra]}
        volumes: {shared: }
        """
    )
    assert [service.name for service in project.services] == ["web", "once", "main"]
    main, web = project.main, project.services[0]
    assert main.environment == {"A": "one two", "B": "3", "C": "$x you"}
    assert [(c.source, c.target) for c in main.copies] == [(folder / "seed", "/data")]
    assert (main.cpus, main.memory) == (1.5, 512 * 1024**2) and main.command is None
    assert [(n.service, n.condition) for n in main.needs] == [
        ("web", "service_healthy"),
        ("once", "service_completed_successfully"),
    ]
    assert web.build and web.build.dockerfile == folder / "web" / "Dockerfile" and web.build.args == {"V": "1"}
    assert web.command == ("python", "-m", "http.server", "80 80") and web.expose == (80, 443)
    assert web.health and web.health.argv == ("wget", "-q", "localhost") and web.health.interval == 90
    assert web.networks == {"default": ("site",)} and web.cap_add == ("SYS_NICE",) and web.tmpfs == {"/run": "size=1m"}
    assert (
        project.volumes == ("shared",)
        and ["SYS_PTRACE is not given" in n or "'never' has a profile" in n for n in project.notices] == [True] * 2
    )


def test_the_log_folders_that_harbor_binds_are_the_box_s_own(read: Read) -> None:
    project = read(
        """
        services:
          main:
            volumes: ["${HOST_VERIFIER_LOGS_PATH}:${ENV_VERIFIER_LOGS_PATH}", "${HOST_AGENT_LOGS_PATH}:/logs/agent"]
        """
    )
    assert not project.main.copies and not project.main.shared


def test_merged_anchors_keep_their_lines(read: Read) -> None:
    with pytest.raises(TaskError, match=r"^docker-compose.yaml:2: 'privileged' of service 'main' is refused"):
        read("x-common: &c\n  privileged: true\nservices:\n  main:\n    <<: *c\n")


def service(line: str) -> str:
    return f"services:\n  main:\n    image: a\n    {line}\n"


REFUSED = {
    "privileged: true": "'privileged' of service 'main' is refused: it would give the container the host",
    'privileged: "${P}"': "'privileged' of service 'main' is refused",
    "cap_add: [NET_ADMIN]": "capability NET_ADMIN of service 'main' is refused",
    "cap_add: [ALL]": "capability ALL",
    "devices: [/dev/kvm]": "'devices'",
    "pid: host": "'pid: host'",
    "ipc: host": "'ipc: host'",
    "uts: host": "'uts: host'",
    "userns_mode: host": "'userns_mode: host'",
    "cgroup: host": "'cgroup'",
    "network_mode: host": "'network_mode: host'",
    "network_mode: container:other": "'network_mode: container:other'",
    "security_opt: [seccomp:unconfined]": "'security_opt: seccomp:unconfined' is refused",
    "security_opt: [apparmor=unconfined]": "apparmor=unconfined",
    "volumes: [/var/run/docker.sock:/s]": "would hand over the engine itself",
    "volumes: [{type: bind, source: /etc, target: /e}]": "'/etc' is outside the task",
    "volumes: [../..:/x]": "'../..' is outside the task",
    "volumes: [~/x:/x]": "'~/x' is outside the task",
    "volumes: [./gone:/x]": "'./gone' does not exist",
    "volumes: [.:/a/../../b]": "without '..'",
    "volumes: [named:/x]": "volume 'named' is not declared",
    "volumes: [{type: npipe, source: a, target: /b}]": "mounts of type 'npipe'",
    "env_file: ../../outside": "outside the task",
    "build: ../..": "outside the task",
    "build: {context: ., ssh: [default]}": "'build.ssh'",
    "build: {context: ., network: host}": "'build.network'",
    "extra_hosts: [host.docker.internal:host-gateway]": "it would reach the host",
    "sysctls: {kernel.shmmax: 1}": "sysctl 'kernel.shmmax'",
    "use_api_socket: true": "hand over the engine",
    "extends: {file: other.yaml, service: x}": "'extends'",
    "deploy: {replicas: 2}": "asks for 2 containers",
    "deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}": "devices are refused",
    "networks: [other]": "network 'other' is not declared",
    "networks: {default: {ipv4_address: 10.0.0.1}}": "'ipv4_address' is refused",
    "comand: x": "'comand' is not understood. Did you mean 'command'?",
    "mem_limit: much": "'mem_limit' must be a size",
    "depends_on: [db]": "needs 'db', which is not started here",
    "depends_on: [main]": "services wait for each other: main → main",
    "environment: [A=$NOT_SET]": "$NOT_SET is not set. A compose file sees the task's own environment.env",
    "command: 'sh -c \"x'": "cannot be split into words",
    "healthcheck: {test: [CMD]}": "'test' must start with",
    "healthcheck: {test: x, interval: soon}": "'interval' must be a duration",
}


@pytest.mark.parametrize("line", REFUSED)
def test_refused_with_file_and_line(read: Read, line: str) -> None:
    with pytest.raises(TaskError) as refused:
        read(service(line), env={"P": "true"})
    text = str(refused.value)
    assert REFUSED[line] in text
    assert text.startswith(("docker-compose.yaml:4: ", "docker-compose.yaml:2: service 'main' needs")), text


TOP = {
    "include: [x.yaml]\nservices: {main: {image: a}}\n": "docker-compose.yaml:1: 'include' is refused",
    "services:\n  main: {image: a}\nvolumes:\n  v:\n    driver_opts: {type: none, o: bind, device: /}\n": (
        "docker-compose.yaml:5: 'driver_opts' of volumes 'v' is refused"
    ),
    "services: {main: {image: a}}\nnetworks:\n  n:\n    external: true\n": "docker-compose.yaml:4: 'external' of networks",
    "services: {main: {image: a}}\nnetworks:\n  n: {driver: macvlan}\n": "'driver' of networks 'n' is refused",
    "services: {web: {image: a}}\n": "there is no service 'main'",
    "services: [a]\n": "'services' must be a mapping",
    "- a\n": "expected a mapping with 'services'",
    "services: {main: {image: [}}\n": "docker-compose.yaml, line 1:",
    "servces: {}\n": "Did you mean 'services'?",
    "services: {main: {image: a, secrets: [s]}}\nsecrets: {s: {environment: HOME}}\n": "must be declared with a 'file'",
}


@pytest.mark.parametrize("text", TOP)
def test_refused_at_the_top(read: Read, text: str) -> None:
    with pytest.raises(TaskError) as refused:
        read(text)
    assert TOP[text] in str(refused.value)


def test_a_link_does_not_lead_out(read: Read, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (folder / "inner").symlink_to(tmp_path / "secret")
    with pytest.raises(TaskError, match="outside the task"):
        read(service("volumes: [./inner:/x]"))


def test_variables_may_be_unknown_before_a_start(read: Read) -> None:
    text = service("environment: {A: $NOT_SET}")
    assert read(text, lenient=True).main.environment == {"A": ""}
    assert read(text, env={"NOT_SET": "now"}).main.environment == {"A": "now"}


def test_anchors_cannot_make_a_small_file_endless(read: Read) -> None:
    levels = "\n".join(f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 9)}]" for i in range(1, 9))
    with pytest.raises(TaskError, match="more than 20000 values"):
        read(f"x0: &x0 [a]\n{levels}\nservices: {{main: {{image: a}}}}\n")
