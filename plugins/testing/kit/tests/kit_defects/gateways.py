"""Broken gateways: the template's server with one fault each."""

from __future__ import annotations

import asyncio
import dataclasses

from benchflow_gateway_base import passing, server

from kit_defects.kinds import broken


class Base(server.Server):
    """Right, but for what a subclass breaks. `passing` functions are looked up on the instance."""


def gateway(breaks: str):
    def register(cls):
        def make(spec):
            return dataclasses.replace(spec, open=cls)

        make.__name__ = cls.__name__
        broken("gateway", breaks)(make)
        return cls

    return register


@gateway("test_key_opens_its_model test_stream_is_passed_on_byte_for_byte_as_it_comes")
class ReEncodes(Base):
    """Collects the answer, decodes it and encodes it again."""

    async def _answer(self, reader, writer):
        collected = Collected()
        await super()._answer(reader, collected)
        head, _, body = bytes(collected.data).partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n" + b" ".join(body.split()))


class Collected:
    def __init__(self):
        self.data = bytearray()

    def write(self, data):
        self.data += data

    async def drain(self): ...


@gateway("test_without_a_key_nothing_is_open test_revoked_key_is_refused")
class TakesAnyKey(Base):
    def _admit(self, headers):
        return next(iter(self._accounts.values()))


@gateway("test_keys_are_apart test_concurrent_requests_do_not_mix")
class KeepsOneRecord(Base):
    async def exchanges(self, key_id, since=0):
        for account in self._accounts.values():
            for exchange in account.exchanges[since:]:
                yield exchange


@gateway("test_exchanges_are_read_on_from_a_place")
class ReadsItAllAgain(Base):
    async def exchanges(self, key_id, since=0):
        async for exchange in super().exchanges(key_id):
            yield exchange


@gateway("test_exchanges_are_recorded")
class RecordsTheSecret(Base):
    async def exchanges(self, key_id, since=0):
        async for exchange in super().exchanges(key_id, since):
            yield dataclasses.replace(exchange, request={**exchange.request, "key": "provider-secret-1b9f"})


@gateway("test_usage_is_counted test_token_budget_is_kept")
class CountsNothing(Base):
    async def _answer(self, reader, writer):
        await super()._answer(reader, writer)
        for account in self._accounts.values():
            account.exchanges = [dataclasses.replace(e, usage=server.Usage()) for e in account.exchanges]


@gateway("test_errors_of_the_provider_are_passed_on test_unreachable_provider_is_an_error")
class HidesErrors(Base):
    async def _answer(self, reader, writer):
        collected = Collected()
        await super()._answer(reader, collected)
        ok = collected.data.startswith(b"HTTP/1.1 200")
        writer.write(bytes(collected.data) if ok else b"HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\n")


@gateway("test_body_cannot_redirect_the_request test_malformed_bodies_are_refused test_other_paths_are_closed")
class TrustsTheClient(Base):
    async def _answer(self, reader, writer):
        _, _, headers, body = await passing.read_request(reader)
        account = self._admit(headers)
        target = account.request.models[0]
        reply = await passing.pass_on(target, self._credential(target), body or b"{}", writer)
        account.exchanges.append(passing.recorded(account.id, 0.0, 0.0, "", {"model": ""}, reply))


@gateway("test_provider_cannot_redirect_the_request")
class FollowsRedirects(Base):
    async def _answer(self, reader, writer):
        _, _, headers, body = await passing.read_request(reader)
        target = self._admit(headers).request.models[0]
        connection, answer = await asyncio.to_thread(passing._ask, target, self._credential(target), body)
        connection.close()
        if answer.headers["location"]:
            base = answer.headers["location"].removesuffix("/chat/completions")
            target = dataclasses.replace(target, base_url=base)
        await passing.pass_on(target, self._credential(target), body, writer)


@gateway("test_close_ends_it")
class StaysOpen(Base):
    async def close(self): ...
