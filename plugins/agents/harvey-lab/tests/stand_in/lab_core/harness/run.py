"""The original's parts that choose a model and put its prompt together; the adapter speaks the responses API."""

import json
import os
import urllib.request
from dataclasses import dataclass, field

DEFAULT_SKILLS: list[str] = []


def build_system_preamble(enable_finish):
    return "You work on legal documents."


def load_skills(names):
    return ""


def setup_skill_scripts(names, workspace_dir):
    pass


@dataclass
class Call:
    id: str
    name: str
    arguments: str


@dataclass
class Response:
    text: str = ""
    tool_calls: list = field(default_factory=list)
    input_tokens: int = 0
    output_tokens: int = 0


def create_adapter(model, temperature=0.0, reasoning_effort=None):
    assert model.startswith("openai/"), model
    return Adapter(model.partition("/")[2])


class Adapter:
    def __init__(self, model):
        self.model, self.context, self.system = model, [], ""

    def make_system_message(self, content):
        self.system = content

    def make_user_message(self, content):
        self.context.append({"type": "message", "role": "user", "content": content})

    def make_tool_result_messages(self, results):
        new = [{"type": "function_call_output", "call_id": number, "output": text} for number, text in results]
        self.context.extend(new)
        return new

    def chat(self, messages, tools):
        body = {"model": self.model, "instructions": self.system, "input": self.context}
        body["tools"] = [{"type": "function", **tool} for tool in tools]
        headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
        url = os.environ["OPENAI_BASE_URL"] + "/responses"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
            found = json.load(answer)
        self.context.extend(found["output"])
        said = Response(input_tokens=found["usage"]["input_tokens"], output_tokens=found["usage"]["output_tokens"])
        for item in found["output"]:
            if item["type"] == "function_call":
                said.tool_calls.append(Call(item["call_id"], item["name"], item["arguments"]))
            elif item["type"] == "message":
                said.text += "".join(part.get("text", "") for part in item["content"])
        return said
