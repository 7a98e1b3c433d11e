"""What a key opens, and that it opens nothing else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from benchflow_gateway_relay.keys import cost_of
from benchflow_testing_kit.host import eventually

from benchflow_core.contracts import KeyRequest, RolloutKey, Usage
from benchflow_core.errors import ConfigurationError, InfrastructureError

WIRES = ("chat", "responses", "messages", "gemini")


@pytest.mark.parametrize(
    "place", [lambda k: {"authorization": f"Bearer {k}"}, lambda k: {"x-api-key": k}, lambda k: {"x-goog-api-key": k}]
)
async def test_a_key_may_come_in_any_header(bench: Any, place: Any) -> None:
    key = await bench.key("chat")
    path, body = bench.words.path("chat"), bench.words.body("chat", "hello")
    status, _, _ = await bench.post(key, path, body, place(key.secret))
    assert status == 200
    status, _, _ = await bench.post(key, path, body, place("sk-bf-wrong"))
    assert status == 401


async def test_a_key_may_come_in_the_query_and_goes_no_further(bench: Any) -> None:
    key = await bench.key("gemini")
    path = f"{bench.words.path('gemini', stream=True)}&key={key.secret}"
    status, _, _ = await bench.post(key, path, bench.words.body("gemini", "hello"), {})
    assert status == 200
    (seen,) = bench.model.log
    assert key.secret not in seen.path and seen.credential == bench.words.provider_key
    (exchange,) = await bench.exchanges(key)
    assert key.secret not in repr(exchange)


@pytest.mark.parametrize("wire", WIRES)
async def test_refusals_have_the_wires_own_shape(bench: Any, wire: Any) -> None:
    key = await bench.key(wire)
    path, body = bench.words.path(wire), bench.words.body(wire, "hello")
    status, raw, _ = await bench.post(key, path, body, {"authorization": "Bearer nothing"})
    error = json.loads(raw)["error"]
    assert status == 401 and "not valid" in error["message"]
    expected = {"messages": ("type", "authentication_error"), "gemini": ("status", "UNAUTHENTICATED")}
    name, value = expected.get(wire, ("code", "invalid_api_key"))
    assert error[name] == value
    assert not bench.model.log


async def test_keys_of_two_rollouts_see_nothing_of_each_other(bench: Any) -> None:
    one, two = await bench.key("chat"), await bench.key("chat")
    assert one.secret != two.secret and one.secret not in repr(one) and one.endpoint == two.endpoint
    await bench.ask(one, "chat", "[[fake:say text=for-one]]")
    assert [e.key_id for e in await bench.exchanges(one)] == [one.id]
    assert await bench.exchanges(two) == []
    await bench.relay.revoke(one.id)
    assert (await bench.ask(one, "chat", "hello"))[0] == 401
    assert (await bench.ask(two, "chat", "hello"))[0] == 200
    assert (await bench.relay.usage(one.id)).requests == 1


async def test_revoking_twice_or_something_unknown_is_fine(bench: Any) -> None:
    key = await bench.key("chat")
    for identity in (key.id, key.id, "key-unknown"):
        await bench.relay.revoke(identity)
    with pytest.raises(ConfigurationError, match="issued no key"):
        await bench.relay.usage("key-unknown")


async def test_revoking_cuts_a_stream_and_the_providers_work(bench: Any) -> None:
    key = await bench.key("messages")
    path, body = bench.words.path("messages"), bench.words.body("messages", "[[fake:slow]]", stream=True)
    headers = {"x-api-key": key.secret}
    async with bench.http.post(bench.url(key, path), json=body, headers=headers) as response:
        got = b""
        while b"text_delta" not in got:
            got += await response.content.readany()
        await bench.relay.revoke(key.id)
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await response.content.read()
    assert await eventually(lambda: bench.model.log[0].client_gone)
    (exchange,) = await bench.exchanges(key)
    assert (exchange.error_type, exchange.status) == ("revoked", 200)
    assert exchange.response["content"][0]["text"].startswith("word")
    assert exchange.usage.output_tokens is None and not exchange.usage.complete


async def test_revoking_ends_a_request_that_waits(bench: Any) -> None:
    bench.model.fault(delay=30, text="never")
    key = await bench.key("chat")
    waiting = asyncio.create_task(bench.ask(key, "chat", "hello"))
    assert await eventually(lambda: len(bench.model.log) == 1)
    await bench.relay.revoke(key.id)
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await asyncio.wait_for(waiting, 5)
    (exchange,) = await bench.exchanges(key)
    assert (exchange.error_type, exchange.status, exchange.response) == ("revoked", 499, None)


CLOSED = [
    ("GET", "/"),
    ("GET", "/v1/files"),
    ("POST", "/v1/files"),
    ("POST", "/v1/embeddings"),
    ("POST", "/v1/responses/resp_123/cancel"),
    ("GET", "/v1/responses/resp_123"),
    ("DELETE", "/v1/models/local-model"),
    ("POST", "/v1beta/cachedContents"),
    ("POST", "/v1beta/models/local-model:batchGenerateContent"),
    ("GET", "/v1/organization/api_keys"),
    ("POST", "/v1/chat/completions/../files"),
    ("PUT", "/v1/chat/completions"),
]


@pytest.mark.parametrize(("method", "path"), CLOSED)
async def test_only_model_calls_are_open(bench: Any, method: str, path: str) -> None:
    key = await bench.key("chat")
    headers = {"authorization": f"Bearer {key.secret}"}
    async with bench.http.request(method, bench.url(key, path), json={}, headers=headers) as response:
        assert response.status == 404
    assert not bench.model.log


@pytest.mark.parametrize("wire", WIRES)
async def test_only_declared_models_are_listed_and_answer(bench: Any, wire: Any) -> None:
    key = await bench.key(wire)
    headers = {"authorization": f"Bearer {key.secret}"}
    prefix = "/v1beta" if wire == "gemini" else "/v1"
    for path, status in (("/models", 200), ("/models/local-model", 200), ("/models/other", 404)):
        async with bench.http.get(bench.url(key, prefix + path), headers=headers) as response:
            assert response.status == status
            assert "local-model" in await response.text() or status == 404
    body = bench.words.body(wire, "hello")
    body = body if wire == "gemini" else {**body, "model": "other"}
    status, raw, _ = await bench.post(key, bench.words.path(wire, model="other"), body)
    assert status == 404
    assert "'other' is not declared for this rollout. Declared: local-model" in json.loads(raw)["error"]["message"]
    assert not bench.model.log
    (exchange,) = await bench.exchanges(key)
    assert (exchange.error_type, exchange.requested_model) == ("refused", "other")
    assert (await bench.relay.usage(key.id)).requests == 0


async def test_a_key_speaks_one_wire(bench: Any) -> None:
    key = await bench.key("chat")
    status, raw, _ = await bench.ask(key, "messages", "hello")
    assert status == 404 and "speaks chat, not messages" in json.loads(raw)["error"]["message"]


async def test_tokens_are_capped(bench: Any) -> None:
    bench.model.script("dear", [{"text": "x", "usage": {"input": 60, "output": 10}}])
    bench.model.script("mute", [{"text": "x", "no_usage": True}])
    key = await bench.key("chat", max_tokens=100)
    statuses = [(await bench.ask(key, "chat", "[[fake:dear]]"))[0] for _ in range(3)]
    assert statuses == [200, 200, 403]
    *_, refused = await bench.exchanges(key)
    assert refused.error_type == "budget" and "100 tokens" in refused.error
    silent = await bench.key("chat", max_tokens=100)
    statuses = [(await bench.ask(silent, "chat", "[[fake:mute]]"))[0] for _ in range(4)]
    assert 403 in statuses, "a provider that reports nothing does not lift the cap"
    assert (await bench.relay.usage(silent.id)).input_tokens is None


async def test_money_is_capped_where_prices_are_known(bench: Any) -> None:
    bench.model.script("dear", [{"text": "x", "usage": {"input": 1_000_000, "output": 0}}])
    key = await bench.key("chat", target={"prices": {"input": 2.0, "output": 8.0}}, max_cost_usd=3.0)
    assert [(await bench.ask(key, "chat", "[[fake:dear]]"))[0] for _ in range(3)] == [200, 200, 403]
    with pytest.raises(ConfigurationError, match="prices"):
        await bench.key("chat", max_cost_usd=1.0)


async def test_what_cannot_be_carried_is_refused_at_once(bench: Any) -> None:
    with pytest.raises(ConfigurationError, match="translates nothing"):
        await bench.relay.issue(KeyRequest("r", "agent", (bench.target("chat"),), "messages"))
    with pytest.raises(ConfigurationError, match="cannot log in"):
        await bench.key("chat", target={"auth": "adc"})
    with pytest.raises(ConfigurationError, match="MISSING_KEY is not set"):
        await bench.key("chat", target={"credential_env": ("MISSING_KEY",)})
    with pytest.raises(ConfigurationError, match="at least one"):
        await bench.relay.issue(KeyRequest("r", "agent", (), "chat"))


async def test_credentials_go_where_the_provider_wants_them(bench: Any) -> None:
    for wire, auth, header in (
        ("chat", "key", "authorization"),
        ("messages", "key", "x-api-key"),
        ("messages", "bearer", "authorization"),
        ("gemini", "key", "x-goog-api-key"),
    ):
        key = await bench.key(wire, target={"auth": auth})
        bench.model.reset()
        await bench.ask(key, wire, "hello")
        (seen,) = bench.model.log
        assert bench.words.provider_key in seen.headers[header]
        others = {"authorization", "x-api-key", "x-goog-api-key"} - {header}
        assert not others & set(seen.headers)
    bench.model.reset()
    await bench.ask(await bench.key("chat", target={"credential_env": ()}), "chat", "hello")
    assert bench.model.log[0].credential is None


async def test_headers_that_name_another_account_stay_here(bench: Any) -> None:
    key = await bench.key("messages")
    sent = {
        "x-api-key": key.secret,
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "b1",
        "openai-organization": "org-1",
        "x-goog-user-project": "p",
        "cookie": "a=b",
    }
    path = bench.words.path("messages") + "?beta=true&$httpHeaders=x"
    await bench.post(key, path, bench.words.body("messages", "hello"), sent)
    (seen,) = bench.model.log
    assert seen.headers["anthropic-beta"] == "b1" and seen.headers["anthropic-version"] == "2023-06-01"
    assert not {"openai-organization", "x-goog-user-project", "cookie"} & set(seen.headers)
    assert seen.path == "/v1/messages?beta=true"


async def test_the_record_is_for_its_owner_only(bench: Any, tmp_path: Path) -> None:
    key = await bench.key("chat")
    await bench.ask(key, "chat", "hello")
    await bench.exchanges(key)
    folder = tmp_path / "work" / "exchanges"
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o077 == 0 and folder.stat().st_mode & 0o077 == 0
    assert bench.words.provider_key not in file.read_text() and key.secret not in file.read_text()


async def test_a_closed_relay_is_closed(bench: Any) -> None:
    key: RolloutKey = await bench.key("chat")
    await bench.relay.close()
    await bench.relay.close()
    with pytest.raises(aiohttp.ClientConnectorError):
        await bench.ask(key, "chat", "hello")
    with pytest.raises(InfrastructureError):
        await bench.key("chat")


def test_what_was_read_from_and_written_to_a_cache_is_not_paid_twice() -> None:
    used = Usage(input_tokens=100, output_tokens=10, cache_read_tokens=20, cache_write_tokens=30)
    prices = {"input": 1.0, "output": 10.0, "cache_read": 0.1, "cache_write": 2.0}
    assert cost_of(used, prices) == pytest.approx((50 * 1.0 + 10 * 10.0 + 20 * 0.1 + 30 * 2.0) / 1e6)
    assert cost_of(used, {"input": 1.0}) is None
