import json

from lab_core.sandbox.sandbox import OUTPUT_PATH


def _tool(name, *fields):
    schema = {"type": "object", "properties": {f: {"type": "string"} for f in fields}, "required": list(fields)}
    return {"name": name, "description": name, "parameters": schema}


def get_all_tool_definitions(enable_finish=True):
    tools = [_tool("bash", "command"), _tool("write", "file_path", "content")]
    return [*tools, _tool("finish", "summary")] if enable_finish else tools


class ToolExecutor:
    def __init__(self, sandbox, shell_timeout=60, enable_finish=True):
        self.sandbox, self.shell_timeout, self.finished = sandbox, shell_timeout, False

    def execute(self, tool_name, arguments):
        given = json.loads(arguments)
        if tool_name == "bash":
            done = self.sandbox.exec(given["command"], timeout=self.shell_timeout)
            return "Error: command timed out" if done.timed_out else done.stdout or "(no output)"
        if tool_name == "write":
            self.sandbox.write_file(f"{OUTPUT_PATH}/{given['file_path']}", given["content"])
            return f"Wrote {given['file_path']}"
        self.finished = True
        return "finished"
