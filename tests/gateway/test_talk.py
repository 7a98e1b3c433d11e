"""One question to a model, over each wire."""

from __future__ import annotations

import pytest

from benchflow_core.contracts import ModelEndpoint
from benchflow_core.errors import ProviderError
from benchflow_core.gateway.talk import ask

TALK = [("user", "Hello."), ("assistant", "Hi."), ("user", "[[fake:say text=good-morning]]")]


@pytest.mark.parametrize("wire", ["chat", "responses", "messages", "gemini"])
async def test_the_answer_comes_back_as_text(local_model, wire):
    endpoint = ModelEndpoint(local_model.base_url, "key", wire, "some-model")
    assert "good-morning" in await ask(endpoint, TALK, system="Be brief.")
    [seen] = local_model.log
    assert seen.credential == "key" and "Be brief." in str(seen.body)


async def test_a_failing_model_is_a_provider_error(local_model):
    local_model.fault(status=529, times=1)
    with pytest.raises(ProviderError, match="gave no answer"):
        await ask(ModelEndpoint(local_model.base_url, "key", "messages", "m"), TALK)
