"""Tasks about files: their hooks write into the agent's box and read what is there."""

import verifiers.v1 as vf


class FileTask(vf.Task[vf.TaskData, vf.State, vf.TaskConfig]):
    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        if self.data.name == "unready":
            raise RuntimeError("the paper is gone")
        await runtime.write("in/word.txt", b"hello\n")

    @vf.reward
    async def copied(self, trace: vf.Trace, runtime: vf.Runtime) -> float:
        if self.data.name == "unfair":
            raise RuntimeError("the scales are broken")
        done = await runtime.run(["cat", "out.txt"], {})
        return float(done.exit_code == 0 and done.stdout == "HELLO\n")

    @vf.metric
    async def size(self, trace: vf.Trace, runtime: vf.Runtime) -> float:
        return float(len(await runtime.read("in/word.txt")))


class Files(vf.Taskset[FileTask, vf.TasksetConfig]):
    def load(self):
        for name in ("upper", "unready", "unfair"):
            data = vf.TaskData(prompt="Write in/word.txt in capitals to out.txt.", name=name)
            yield FileTask(data, self.config.task)


__all__ = ["Files"]
