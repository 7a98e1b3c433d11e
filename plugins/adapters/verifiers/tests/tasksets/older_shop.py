"""An environment of the older generation, with tools, two weighted rewards and a limit of turns."""

import verifiers as vf
from datasets import Dataset


def price(item: str) -> str:
    """What an item costs."""
    return f"{len(item)} coins"


def load_environment(items: int = 2, max_turns: int = 4):
    rows = [{"question": f"What does {'x' * n} cost?", "answer": f"{n} coins"} for n in range(1, items + 1)]

    def right(completion, answer) -> float:
        return float(completion[-1]["content"] == answer)

    def asked(completion) -> float:
        return float(any(message["role"] == "tool" for message in completion))

    rubric = vf.Rubric(funcs=[right, asked], weights=[1.0, 0.5])
    return vf.ToolEnv(tools=[price], max_turns=max_turns, dataset=Dataset.from_list(rows), rubric=rubric)
