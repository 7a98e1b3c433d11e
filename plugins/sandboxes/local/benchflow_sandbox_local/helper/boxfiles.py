"""Files in and out, seen from inside the box."""

from __future__ import annotations

import os
import socket

from benchflow_sandbox_local.helper import receiving, sending, transfer, users, wire
from benchflow_sandbox_local.helper.service import Answer, Service


class Files(Service):
    single_user = False

    def path(self, path: str) -> str:
        """Where a path of the box is, for this process."""
        return path

    def _place(self, message: wire.Message) -> receiving.Placement | None:
        """Who owns what is put into the box; `None` when there is no such user."""
        if message.get("owners"):
            return receiving.Placement(-1, -1, message["mode"])
        user = users.find(message["user"])
        if user is None:
            return None
        if self.single_user:
            return receiving.Placement(None, None, message["mode"])
        return receiving.Placement(user.uid, user.gid, message["mode"])

    def do_put(self, message: wire.Message, fds: list[int]) -> Answer:
        place, target = self._place(message), self.path(message["target"])
        if place is None:
            return {"no_user": message["user"]}, []

        def work(sock: socket.socket) -> None:
            os.makedirs(os.path.dirname(target) or "/", exist_ok=True)
            receiving.receive(sock, target, None, place)
            wire.send(sock, {"done": True})

        return self.worker(work, fds)

    def do_put_now(self, message: wire.Message, fds: list[int]) -> Answer:
        """The same for a few small files, which came with the request."""
        place, target = self._place(message), self.path(message["target"])
        if place is None:
            return {"no_user": message["user"]}, []
        os.makedirs(os.path.dirname(target) or "/", exist_ok=True)
        receiving.write_entries(message["entries"], fds, target, transfer.Limits(), place)
        return {}, []

    def do_get(self, message: wire.Message, fds: list[int]) -> Answer:
        limits, source = transfer.Limits(**message["limits"]), self.path(message["source"])
        full = bool(message.get("full"))
        return self.worker(lambda sock: sending.send(sock, source, limits, links=full, owners=full), fds)

    def do_get_now(self, message: wire.Message, fds: list[int]) -> Answer:
        """What is small comes with the answer."""
        limits, source = transfer.Limits(**message["limits"]), self.path(message["source"])
        batch = sending.collect(source, message["inline"], limits, links=False)
        return ({"entries": batch[0]}, batch[1]) if batch else ({"large": True}, [])
