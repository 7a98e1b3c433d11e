"""Single-turn tasks: the sum is worth 1, the form 0.25 more."""

import verifiers.v1 as vf


class SumData(vf.TaskData):
    answer: int


class SumTask(vf.Task[SumData, vf.State, vf.TaskConfig]):
    @vf.reward(weight=1.0)
    async def right(self, trace: vf.Trace) -> float:
        return float(trace.last_reply.split("=")[-1].strip() == str(self.data.answer))

    @vf.reward(weight=0.25)
    async def polite(self, trace: vf.Trace) -> float:
        return float("please" in trace.last_reply.lower())

    @vf.metric
    async def length(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply))


class SumConfig(vf.TasksetConfig):
    count: int = 4
    broken: bool = False


class Sums(vf.Taskset[SumTask, SumConfig]):
    def load(self):
        if self.config.broken:
            raise RuntimeError("the sums are sold out")
        for number in range(self.config.count):
            prompt = f"What is {number}+{number}? Answer with the number."
            data = SumData(prompt=prompt, system_prompt="You add numbers.", answer=2 * number)
            yield SumTask(data, self.config.task)


__all__ = ["Sums"]
