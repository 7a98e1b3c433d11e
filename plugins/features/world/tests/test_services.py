"""Services by name: words, the registry, detection, hooks, layers."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import benchflow
import pytest
from benchflow import detect_services_from_dockerfile
from benchflow_feature_world import services as module
from benchflow_feature_world.layer import distribution_layer
from benchflow_feature_world.services import register_service, service_of

from benchflow_core.errors import ConfigurationError
from benchflow_core.plugins import registry

from .conftest import GET

CLAWS = {"gmail": 9001, "slack": 9002, "gcal": 9003, "gdoc": 9004, "gdrive": 9005}


@pytest.fixture
def kv(monkeypatch):
    monkeypatch.setattr(module, "_REGISTERED", {})
    return register_service("kv", "kvd", 9700, command="kvd --db /data/kv.db --port 9700")


def test_the_five_are_known_by_both_names():
    for name, port in CLAWS.items():
        assert benchflow.SERVICES[name].port == port and benchflow.SERVICES[f"claw-{name}"].name == name
    with pytest.raises(KeyError, match=r"known: .*gmail"):
        benchflow.SERVICES["gmial"]


def test_words(kv):
    plugins = registry()
    assert (service_of("gmail", plugins).port, service_of("claw-gmail:9009", plugins).port) == (9001, 9009)
    seeded = service_of("gmail?scenario=office&seed=7", plugins)
    assert seeded.options == {"scenario": "office", "seed": "7"} and str(seeded) == "gmail?scenario=office&seed=7"
    assert service_of(str(service_of("kv:9701", plugins)), plugins).port == 9701
    for wrong in ("gmial", "gmail:0", "gmail:99999", "a b", ""):
        with pytest.raises(ConfigurationError):
            service_of(wrong, plugins)
    with pytest.raises(ConfigurationError, match="needs a port"):
        register_service("bad", "bad")


@pytest.mark.parametrize(
    ("dockerfile", "found"),
    [
        ("FROM x\nRUN pip install claw-gmail claw-gcal\n", ["gmail", "gcal"]),
        ("FROM x\nCMD claw-gmail --db /data/gmail.db serve\n", ["gmail"]),
        ("FROM x\n# claw-gmail is not used\n", []),
        ("FROM x\nCOPY claw-gmailer /x\n", []),
        ("FROM x\nLABEL a=\"claw-slack claw-gdoc\"\n", ["slack", "gdoc"]),
    ],
)  # fmt: skip
def test_detection(dockerfile, found, tmp_path):
    assert [s.name for s in detect_services_from_dockerfile(dockerfile)] == found
    (tmp_path / "Dockerfile").write_text(dockerfile)
    assert [s.name for s in detect_services_from_dockerfile(tmp_path)] == found
    assert detect_services_from_dockerfile(tmp_path / "none") == []


@pytest.mark.parametrize("how", ["services", "hooks", "detected"])
async def test_every_way_starts_the_service_out_of_reach(task, run, kv, how):
    text = (
        None
        if how == "detected"
        else "FROM python:3.12-slim\nCOPY k?d /usr/local/bin/\nRUN chmod 755 /usr/local/bin/k*\nWORKDIR /app\n"
    )
    folder = task(
        f"test ! -e /data/kv.db && {GET} 'http://localhost:9700/set?answer=42'",
        manifest=None, **({"environment__Dockerfile": text} if text else {}),
    )  # fmt: skip
    settings = {
        "services": {"services": ["kv"]},
        "hooks": {"pre_agent_hooks": benchflow.build_service_hooks([kv])},
        "detected": {},
    }[how]
    result = await run(folder, **settings)
    assert result.rewards == {"reward": 1.0}, result.error
    assert result.world["services"] == ["kv"] and result.world["pinned_by"] == "services"


async def test_a_service_that_is_named_takes_none_of_the_tasks_own_away(task, rollout, kv):
    """A config for many tasks names what it adds; the one that both name is started once, as the config says."""
    folder = task("true", manifest=None)
    for named, ports in (["gmail"], {"gmail": 9001, "kv": 9700}), (["gmail", "kv:9701"], {"gmail": 9001, "kv": 9701}):
        world = (await rollout(folder, services=named)).plan.features.of("world").world
        assert {service.name: service.port for service in world.services} == ports


async def test_without_a_word_about_it_nothing_is_started(task, run):
    result = await run(task(manifest=None))
    assert "world" not in result.features


async def test_a_hook_works_in_any_box(task, rollout, kv):
    one = await rollout(task(manifest=None), services=[])
    (hook,) = benchflow.build_service_hooks(["kv"])
    object.__setattr__(one.plan, "world", None)
    try:
        await one.setup()
        await one.start()
        await hook(one.sandbox)
        done = await one.sandbox.exec(("sh", "-c", f"{GET} http://localhost:9700/health"))
        assert b"ok" in done.stdout
    finally:
        await one.cleanup()


async def test_beside_the_agent_where_there_is_no_second_box_it_is_said(task, rollout, kv):
    from dataclasses import replace

    from benchflow_core.rollout.feature_views import RolloutRunView
    from benchflow_core.rollout.features import FeaturePlans, FeatureRuns

    one = await rollout(task(f"{GET} 'http://localhost:9700/set?answer=42'", manifest=None), services=["kv"])
    (planned,) = (each for each in one.plan.features.planned if each.feature.spec.folder == "world")
    world = replace(planned.plan.world, own_box=False)
    beside = replace(planned.plan, world=world, layers=world.layers(), runtimes=world.runtimes())
    one.plan = replace(one.plan, features=FeaturePlans((replace(planned, plan=beside),)))
    one.features = FeatureRuns(one.plan.features, lambda feature: RolloutRunView(one, feature))
    result = await one.run()
    assert result.rewards == {"reward": 1.0}, result.error
    assert "world-within-reach" in {finding["code"] for finding in result.findings}
    assert result.isolation == "fresh"


@pytest.mark.parametrize("name", CLAWS)
def test_a_claw_is_a_layer_of_pure_python(name):
    layer = distribution_layer(f"benchflow-service-claw-{name}")
    assert layer is distribution_layer(f"benchflow-service-claw-{name}")
    assert (
        layer.files[f"bin/claw-{name}"].startswith(b"#!/bin/sh")
        and f"@{importlib.metadata.version(f'benchflow-service-claw-{name}')}-" in layer.key
    )
    assert not [
        path for path in layer.files if path.endswith((".so", ".pyc")) or path.startswith("site/benchflow_core/")
    ]
    assert sum(map(len, layer.files.values())) < 20_000_000


def test_what_cannot_be_a_layer_is_refused_by_name(tmp_path, monkeypatch):
    with pytest.raises(ConfigurationError, match="'no-such-dist' is not installed"):
        distribution_layer("no-such-dist")
    info = tmp_path / "stony-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stony\nVersion: 1.0\n")
    (info / "RECORD").write_text("stony/__init__.py,,\nstony/_fast.so,,\n")
    (tmp_path / "stony").mkdir()
    (tmp_path / "stony" / "__init__.py").write_text("")
    (tmp_path / "stony" / "_fast.so").write_bytes(b"\x7fELF")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(ConfigurationError, match=r"stony has compiled parts \(_fast.so\)"):
        distribution_layer("stony")


def test_a_dockerfile_that_names_none_imports_none(tmp_path):
    """What is installed and not named costs nothing."""
    code = (
        "import sys; from pathlib import Path; from benchflow_core.plugins import registry\n"
        "from benchflow_feature_world.services import services_in\n"
        "path = Path(sys.argv[1]); path.write_text('FROM debian\\nRUN true\\n'); assert services_in(path, registry()) == []\n"
        "assert not [m for m in sys.modules if m.startswith('benchflow_service_')]\n"
        "path.write_text('FROM debian\\nRUN pip install x && claw-gmail seed\\n')\n"
        "print([s.name for s in services_in(path, registry())])"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "Dockerfile")]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == "['gmail']"
