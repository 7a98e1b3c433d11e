"""An MCP server made with the official SDK, for the box: one tool, which leaves a line in a file.

`mcp_server.py stdio FILE` or `mcp_server.py http FILE PORT`; the SDK lies beside it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "sdk"))

from mcp.server import MCPServer

way, ledger = sys.argv[1:3]
server = MCPServer(f"{way} ledger")


@server.tool(name=f"add_{way}_entry")
def add_entry(text: str) -> str:
    """Adds an entry to the ledger and says how many there are."""
    with open(ledger, "a+") as file:
        file.write(f"{way}: {text}\n")
        file.seek(0)
        return f"the {way} ledger now has {len(file.readlines())} entries"


if way == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", port=int(sys.argv[3]))
