"""Where the core calls plugin code: what is raised there names the plugin, and what callers look for passes."""

from __future__ import annotations

import asyncio

import pytest

from benchflow_core.contracts import DriverSpec, GatewaySpec
from benchflow_core.errors import BenchflowError, PluginFailed, SandboxLost
from benchflow_core.plugins.guard import Guarded, guarded_spec

WHO = "gateway 'dies' of somebodys-kit 2.5"


class Thing:
    name = "thing"

    async def fails(self, error: BaseException) -> None:
        raise error

    async def expose_to_box(self) -> None:
        raise NotImplementedError


async def test_an_object_of_a_plugin_fails_by_name():
    thing = Guarded(Thing(), WHO)
    assert thing.name == "thing"
    for error in (KeyError("region"), SystemExit(3), NotImplementedError()):
        with pytest.raises(PluginFailed, match=r"^gateway 'dies' of somebodys-kit 2.5 failed in fails\(\): ") as caught:
            await thing.fails(error)
        assert caught.value.__cause__ is error and caught.value.details == {"plugin": WHO}
    for error in (SandboxLost("gone"), FileNotFoundError("no"), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            await thing.fails(error)
    with pytest.raises(NotImplementedError):
        await thing.expose_to_box()
    with pytest.raises(PluginFailed, match="ConnectionResetError"):
        await Guarded(Thing(), WHO, (BenchflowError,)).fails(ConnectionResetError())


def test_a_spec_keeps_what_is_right_and_names_what_is_not():
    def unsure():
        raise OSError("who knows")

    spec = GatewaySpec(summary="x", open=lambda context: context["no"], wires=frozenset(), available=unsure)
    guarded = guarded_spec("gateway", WHO, spec)
    assert (guarded.summary, guarded.check) == (spec.summary, spec.check)
    with pytest.raises(PluginFailed, match=r"failed in open\(\): KeyError: 'no'\."):
        guarded.open({})
    assert guarded.available().reason.startswith(f"{WHO} failed in available(): OSError: who knows.")
    wrong = guarded_spec("gateway", WHO, GatewaySpec("x", open=print, wires=frozenset(), available=lambda: True))
    assert not wrong.available().ok and "returned a bool, not an Availability" in wrong.available().reason


async def test_what_is_to_be_async_is_asked_to_be():
    guarded = guarded_spec("driver", WHO, DriverSpec(summary="x", drive=lambda episode, params: None))
    with pytest.raises(PluginFailed, match=r"its drive\(\) is not async"):
        await guarded.drive(None, {})
