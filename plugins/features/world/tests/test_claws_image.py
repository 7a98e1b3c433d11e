"""A task on the claws' base image, as the documents have it: databases beside the Dockerfile, tests that read them."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from benchflow import detect_services_from_dockerfile
from benchflow_claw_kit.dockerfile import places_of


@pytest.fixture
def claws(tmp_path: Path, claws_task) -> Path:
    return claws_task(tmp_path / "tasks" / "schedule-meeting-from-email")


def test_a_base_image_names_the_services_whose_databases_are_there(claws):
    assert [s.name for s in detect_services_from_dockerfile(claws / "environment")] == ["gmail", "gcal"]
    dockerfile = claws / "environment" / "Dockerfile"
    (claws / "environment" / "slack.scenario.json").write_text("{}")
    for line in ("kywch/smolclaws-base:latest", "--platform=linux/amd64 ghcr.io/x/claws-base@sha256:0 AS world"):
        dockerfile.write_text(f"FROM {line}\n")
        assert [s.name for s in detect_services_from_dockerfile(dockerfile)] == ["gmail", "slack", "gcal"]
    for line in ("debian:bookworm-slim", "my-claws-base", "claws-base-not"):
        dockerfile.write_text(f"FROM {line}\nCOPY gmail.db /app/\n")
        assert detect_services_from_dockerfile(dockerfile) == [], "a file called gmail.db alone is nobody's mailbox"


DOCKERFILE = """
FROM a AS one
COPY gmail.db /first/
FROM benchflow/claws-base
ARG ROOT=/srv
ENV DATA=$ROOT/claws MORE="a b"
WORKDIR app
# COPY gmail.db /no/
COPY gmail.db gcal.db \\
  ${DATA}/
COPY --chown=1:1 ["gmail.db", "data/"]
add . /all
COPY *.db /glob
COPY ./gmail.db /one/world.db
COPY gmail.db /two/dir
COPY --from=one /first/gmail.db /gone/
COPY gcal.db /else.db
COPY [broken
"""


def test_where_a_dockerfile_lays_a_file():
    found = places_of(DOCKERFILE, "gmail.db")
    assert found == [
        "/srv/claws/gmail.db",
        "/app/data/gmail.db",
        "/all/gmail.db",
        "/glob/gmail.db",
        "/one/world.db",
        "/two/dir/gmail.db",
    ]


async def test_tests_read_the_database_where_it_was(claws, run):
    """Also a second time, after the world is gone; and the agent has no copy of it."""
    peek = claws / "solution" / "solve.sh"
    peek.write_text(peek.read_text().replace("set -e\n", "set -e\ntest ! -e /srv/claws/gcal.db\n"))
    result = await run(claws, allow_substitute=True, keep_state="all")
    assert result.rewards == {"reward": 1.0}, (result.error, result.verifier_error_info)
    assert json.loads((result.rollout_dir / "result.json").read_text())["world"]["services"] == ["gmail", "gcal"]
    score = ("-m", "benchflow_core.cli.main", "eval", "score", str(result.rollout_dir))
    again = await asyncio.create_subprocess_exec(sys.executable, *score, "--json", stdout=PIPE, stderr=PIPE)
    out, err = await again.communicate()
    assert again.returncode == 0 and b'"reward": 1.0' in out, err
    assert (await run(claws, "nop", allow_substitute=True)).rewards == {"reward": 0.0}


@pytest.mark.docker
async def test_on_an_image_that_holds_the_services(claws, run, claws_base):
    result = await run(claws, sandbox="docker")
    assert result.rewards == {"reward": 1.0}, (result.error, result.verifier_error_info)
    assert result.image_fidelity == "exact"
