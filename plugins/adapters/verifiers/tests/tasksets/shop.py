"""Tool-using tasks: a shop whose state is shared between its tools and the reward, and a stop condition."""

import verifiers.v1 as vf


class ShopState(vf.State):
    bought: tuple[str, ...] = ()


class ShopData(vf.TaskData):
    wanted: list[str]


class ShopConfig(vf.ToolsetConfig):
    pass


class Shop(vf.Toolset[ShopConfig, ShopState]):
    @vf.tool
    async def price(self, item: str) -> str:
        """What an item costs."""
        return f"{item}: {len(item)} coins"

    @vf.tool
    async def buy(self, item: str) -> str:
        """Buy an item."""
        self.state.bought += (item,)
        return f"bought {item}"


class ShopTask(vf.Task[ShopData, ShopState, vf.TaskConfig]):
    @classmethod
    def toolsets(cls, config):
        return [Shop(ShopConfig())]

    @vf.stop
    async def enough(self, trace: vf.Trace) -> bool:
        return len(trace.state.bought) >= 2

    @vf.reward
    async def basket(self, trace: vf.Trace) -> float:
        return sum(item in trace.state.bought for item in self.data.wanted) / len(self.data.wanted)

    @vf.metric
    async def calls(self, trace: vf.Trace) -> float:
        return float(len(trace.tool_messages))


class Shops(vf.Taskset[ShopTask, vf.TasksetConfig]):
    def load(self):
        for wanted in (["tea", "milk"], ["bread"]):
            data = ShopData(prompt=f"Buy {' and '.join(wanted)} in the shop.", wanted=wanted)
            yield ShopTask(data, self.config.task)


__all__ = ["Shops"]

if __name__ == "__main__":
    Shop.run()
