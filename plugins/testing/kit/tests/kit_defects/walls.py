"""Broken walls, networks, snapshots, limits. The bare folder has no walls at all, whatever it declares."""

from __future__ import annotations

from dataclasses import replace

from benchflow_core.contracts import Change, NetworkPolicy, Resources
from kit_defects.wrap import Box, Provider, defect


@defect(
    "test_files_of_one_box_are_not_visible_in_another test_files_of_the_host_are_not_changed "
    "test_processes_of_one_box_are_not_visible_in_another test_processes_of_the_host_are_not_visible "
    "test_two_boxes_cannot_reach_each_other test_host_ports_cannot_be_reached "
    "test_cut_off_box_has_loopback_and_nothing_else test_allowlist_lets_only_named_hosts_through "
    "test_memory_is_limited test_processes_are_limited test_storage_is_limited test_processor_time_is_limited",
    declares="network-none network-allowlist limit-memory limit-pids limit-storage limit-cpu",
)
class HasNoWalls(Provider): ...


@defect("test_cloud_metadata_cannot_be_reached")
class ReachesMetadata(Box):
    async def exec(self, argv, **options):
        done = await super().exec(argv, **options)
        return replace(done, stdout=b"True\n") if "169.254.169.254" in argv else done


@defect("test_secrets_are_in_no_command_line")
class PassesEnvironmentInArguments(Box):
    async def exec(self, argv, env=None, **options):
        exports = "".join(f"export {k}='{v}'; " for k, v in (env or {}).items())
        return await super().exec(["sh", "-c", f'{exports}"$@"; exit $?', "sh", *argv], **options)


@defect("test_secrets_are_in_no_command_line")
class SpawnsWithArgumentEnvironment(Box):
    async def spawn(self, argv, env=None, **options):
        return await super().spawn(
            ["sh", "-c", f"{'; '.join(f'{k}={v}' for k, v in env.items())}; {argv[2]}"], **options
        )


@defect("test_secrets_do_not_stay")
class RemembersSecrets(Box):
    env: dict[str, str] | None = None

    async def exec(self, argv, env=None, **options):
        self.env = env or self.env
        return await super().exec(argv, env=env, **options)

    @property
    def info(self):
        return replace(self.inner.info, meta={"last": self.env})


@defect("test_host_server_is_reached_only_where_it_is_exposed", base="local")
class ExposesToAll(Box):
    boxes: list[Box] = []  # noqa: RUF012

    def __init__(self, inner):
        super().__init__(inner)
        self.boxes.append(self)

    async def stop(self):
        self.boxes.remove(self) if self in self.boxes else None
        await super().stop()

    async def expose_to_box(self, endpoint, port=None):
        for box in self.boxes:
            url = await box.inner.expose_to_box(endpoint, port=18_777)
        return url


@defect("test_public_box_reaches_the_outside", base="local", declares="network-public")
class IsAlwaysCutOff(Provider):
    async def start(self, image, request):
        return await super().start(image, replace(request, network=NetworkPolicy(mode="none")))


@defect("test_policy_of_a_running_box_changes", declares="network-none network-dynamic network-public")
class ChangesNoPolicy(Box):
    async def set_network(self, policy): ...


class Silent:
    async def read(self, limit=65536):
        return b"kit-banner\n"

    async def write(self, data): ...

    async def close(self): ...


@defect(
    "test_listening_ports_are_found test_dial_reaches_a_server_in_the_box test_dial_to_a_closed_port_is_an_error",
    declares="ports",
)
class AnswersForAnyPort(Box):
    async def listening(self, **options):
        return []

    async def dial(self, port, **options):
        return Silent()


@defect(
    "test_exposed_host_server_answers test_exposed_host_server_takes_many_connections "
    "test_exposed_host_server_knows_half_closed_connections test_two_servers_are_exposed_at_the_ports_asked_for",
)
class ExposesNothing(Box):
    async def expose_to_box(self, endpoint, port=None):
        return "http://127.0.0.1:9"


@defect(
    "test_box_from_a_snapshot_has_its_files test_snapshot_covers_the_whole_file_system "
    "test_boxes_from_one_snapshot_are_independent test_snapshot_of_a_box_from_a_snapshot "
    "test_processes_go_on_while_a_snapshot_is_taken test_kept_snapshot_outlives_its_provider",
    base="local",
)
class SnapshotsTheImage(Provider):
    async def start(self, image, request):
        box = await super().start(image, request)
        box.snapshot = self._snapshot_of(box, image)
        return box

    def _snapshot_of(self, box, image):
        async def snapshot(name, **options):
            await box.inner.kill_all()
            return replace(await box.inner.snapshot(name, **options), image=image)

        return snapshot


@defect("test_forgotten_snapshot_harms_no_box", base="local")
class NeverForgets(Provider):
    async def forget(self, snapshot): ...


@defect("test_restore_puts_the_box_back", base="local")
class RestoresNothing(Box):
    async def restore(self, snapshot): ...


@defect("test_changes_name_what_differs_from_the_image test_unchanged_box_has_no_changes", base="local")
class SeesOtherChanges(Box):
    async def snapshot(self, name, **options):
        found = await super().snapshot(name, **options)
        return replace(found, changes=(Change("/etc/made-up", "added"), *reversed(found.changes or ())))


@defect(
    "test_reverted_paths_are_as_in_the_image test_hostile_changes_are_reported_and_reverted",
    base="local",
)
class RevertsNothing(Provider):
    async def start(self, image, request):
        return await super().start(image, replace(request, revert=()))


@defect("test_carried_changes_are_against_the_image_below", base="local")
class CarriesNoChanges(Provider):
    async def start(self, image, request):
        return await super().start(image, replace(request, carry_changes=False))


@defect("test_hidden_paths_cannot_be_read test_read_only_paths_cannot_be_changed", declares="access-view")
class ShowsEverything(Box):
    async def exec(self, argv, view=None, **options):
        return await super().exec(argv, **options)

    async def spawn(self, argv, view=None, **options):
        return await super().spawn(argv, **options)


@defect("test_memory_is_limited", base="local", declares="limit-memory")
class ForgetsResources(Provider):
    async def start(self, image, request):
        return await super().start(image, replace(request, resources=Resources()))
