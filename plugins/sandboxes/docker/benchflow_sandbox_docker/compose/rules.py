"""Which words of a compose file are understood, which are passed over, and which are refused, with the reason."""

from __future__ import annotations

from typing import Final

__all__ = ["CAPABILITIES", "DANGEROUS", "IGNORED", "KNOWN", "TOP_KNOWN", "TOP_REFUSED"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KNOWN: Final = _words(
    "build cap_add cap_drop command container_name cpus depends_on deploy entrypoint env_file environment expose "
    "extra_hosts healthcheck hostname image ipc mem_limit network_mode networks pid pids_limit platform ports profiles "
    "read_only restart scale security_opt shm_size sysctls tmpfs ulimits user userns_mode uts volumes working_dir "
    "secrets configs"
)

IGNORED: Final = _words(
    "annotations attach cpu_count cpu_percent cpu_period cpu_quota cpu_shares develop domainname init labels "
    "label_file logging mem_reservation mem_swappiness memswap_limit oom_score_adj pull_policy stdin_open "
    "stop_grace_period stop_signal storage_opt tty"
)
"""Without effect on what a task can see, or of less weight than the limits that are kept."""

DANGEROUS: Final = {
    "privileged": "it would give the container the host",
    "devices": "it would give the container devices of the host",
    "device_cgroup_rules": "it would give the container devices of the host",
    "gpus": "GPUs are asked for in the task's own settings",
    "cgroup": "it would show the host's control groups",
    "cgroup_parent": "it would put the container outside its own limits",
    "runtime": "it would replace the engine's own walls",
    "isolation": "it would replace the engine's own walls",
    "volumes_from": "it would mount what another container has",
    "external_links": "it would reach containers of others",
    "credential_spec": "it would read credentials of the host",
    "use_api_socket": "it would hand over the engine itself",
    "extends": "it would read other files; write the service out",
    "provider": "it would run a program on the host",
    "dns": "the sandbox decides how names are resolved",
    "dns_opt": "the sandbox decides how names are resolved",
    "dns_search": "the sandbox decides how names are resolved",
    "links": "it is no longer needed: services find each other by name",
    "mac_address": "the sandbox decides the network",
    "post_start": "it is not supported; put it into the command",
    "pre_stop": "it is not supported: a rollout's services are killed, not stopped",
    "models": "models are reached through the gateway",
    "blkio_config": "it names devices of the host",
    "group_add": "it is not supported; set 'user'",
}

CAPABILITIES: Final = _words(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID IPC_LOCK KILL NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID "
    "SYS_CHROOT SYS_NICE SYS_PTRACE"
)
"""May be added: they act inside the container only. Not NET_RAW, NET_ADMIN, SYS_ADMIN, MKNOD and the like."""

TOP_KNOWN: Final = frozenset(("configs", "name", "networks", "secrets", "services", "version", "volumes"))
TOP_REFUSED: Final = {"include": "it would read other files; write the services out", "models": DANGEROUS["models"]}
