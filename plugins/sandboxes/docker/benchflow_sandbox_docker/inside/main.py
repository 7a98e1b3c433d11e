"""The first process of a box. It starts programs, carries their streams, moves files, and ends when its owner does.

Programs cannot signal it (it is PID 1 and has no handler they could use), trace it or read its memory (it is not
dumpable, and nobody in the box may trace what is not), and it runs from a read-only mount of our own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial

from benchflow_boxkit.inside import users, wire
from benchflow_boxkit.inside.calls import FirstProcess
from benchflow_boxkit.inside.polling import DirectLoop
from benchflow_boxkit.inside.system import CAP_SYS_ADMIN, PR_CAPBSET_DROP, PR_SET_DUMPABLE, prctl
from benchflow_boxkit.inside.view import View

from benchflow_sandbox_docker.inside import filter, revert, state, system
from benchflow_sandbox_docker.inside.isolation import FilteredIsolation


class ContainerSupervisor(FirstProcess):
    def __init__(self) -> None:
        super().__init__(DirectLoop(self.call))
        self.filter = b""

    # --- the box itself ------------------------------------------------------------------------------------------

    def do_setup(self, number: int, message: wire.Message) -> wire.Message:
        """Walls first, then what the box needs before anything runs in it."""
        for prefix in message["never"]:
            system.forbid(prefix, state.NEVER)
        for prefix in message["peers"]:
            system.permit(prefix, state.PEERS)
        state.forbid(message["forbidden"])
        if message["forbidden"]:
            state.permit_resolvers()
        if message["cut_off"]:
            state.cut_off(True)
        prctl(PR_CAPBSET_DROP, system.CAP_NET_ADMIN)
        if message["views"]:
            prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN)
            self.filter = filter.program()
        state.remember()
        return {"users": users.names()}

    def do_begin(self, number: int, message: wire.Message) -> wire.Message:
        os.makedirs(message["workdir"], exist_ok=True)
        return {"users": users.names()}

    def do_network(self, number: int, message: wire.Message) -> None:
        state.forbid(message["forbidden"])
        state.cut_off(bool(message["cut_off"]))

    def do_forbid(self, number: int, message: wire.Message) -> None:
        state.forbid(message["forbidden"])

    # --- programs ------------------------------------------------------------------------------------------------

    def isolation(self, message: wire.Message) -> Callable[[], FilteredIsolation] | None:
        view = View(**message["view"]) if message.get("view") else None
        return partial(FilteredIsolation, view, self.filter) if view or self.filter else None

    # --- files -----------------------------------------------------------------------------------------------------

    def do_put_whole(self, number: int, message: wire.Message) -> wire.Message:
        """As `put`, from a file that holds the whole transfer and is gone from its place at once."""
        make = self.receiver(message)
        if make is None:
            return {"no_user": message["user"]}
        source = os.open(message["whole"], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        os.unlink(message["whole"])
        self.take_from(source, number, make)
        return {}

    def do_look(self, number: int, message: wire.Message) -> wire.Message:
        """What there is at these paths."""
        return {"rows": [state.look(path) for path in message["paths"]]}

    def do_index(self, number: int, message: wire.Message) -> wire.Message:
        self.give(number, state.index(bool(message.get("stamps"))))
        return {}

    def do_touched(self, number: int, message: wire.Message) -> wire.Message:
        self.give(number, state.touched())
        return {}

    def do_below(self, number: int, message: wire.Message) -> wire.Message:
        return {"paths": state.below(message["path"])}

    def do_give_back(self, number: int, message: wire.Message) -> wire.Message:
        """These paths, as another box is to have them again."""
        self.give(number, revert.records(message["paths"]))
        return {}

    def do_take_back(self, number: int, message: wire.Message) -> wire.Message:
        self.take(number, revert.Reverting)
        return {}

    def do_remove(self, number: int, message: wire.Message) -> None:
        for path in message["paths"]:
            revert.remove(path)

    def do_pack(self, number: int, message: wire.Message) -> wire.Message:
        return {"packed": state.pack(message["paths"]), "files": state.changed_files()}

    def do_unpack(self, number: int, message: wire.Message) -> None:
        state.unpack(message["skip"])

    def do_drop_pack(self, number: int, message: wire.Message) -> None:
        state.drop()


def main() -> None:
    """Serve until the owner's end closes. PID 1 ending ends the box."""
    try:
        prctl(PR_SET_DUMPABLE, 0)
        ContainerSupervisor().loop.serve()
    except (EOFError, BrokenPipeError):
        os._exit(0)
    except BaseException as error:
        print(f"the box's first process failed: {error!r}", file=sys.stderr, flush=True)
        os._exit(70)
