#!/usr/bin/env bash
# Podman's Docker-compatible socket: installs Debian's podman where there is none, serves the API, waits, prints its DOCKER_HOST.
# The settings are in a folder of its own and touch no other Podman of this machine. Needs root only to install.
set -euo pipefail

HOME_DIR=${PODMAN_HOME:-${TMPDIR:-/tmp}/benchflow-podman-$(id -u)}
SOCKET=$HOME_DIR/podman.sock

refuse() { echo "podman_engine: $1" >&2; exit 3; }
answers() { curl --silent --fail --max-time 5 --unix-socket "$SOCKET" http://localhost/_ping >/dev/null; }

if ! command -v podman >/dev/null; then
  [ "$(id -u)" = 0 ] || refuse "no podman, and installing it needs root"
  command -v apt-get >/dev/null || refuse "no podman, and no apt-get to install it with"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends podman runc curl >/dev/null
fi

mkdir -p "$HOME_DIR"
# A root without CAP_SYS_RESOURCE cannot raise limits, and crun refuses a hybrid cgroup tree: hence these two.
cat >"$HOME_DIR/containers.conf" <<CONF
[containers]
default_ulimits = ["nofile=$(ulimit -Hn):$(ulimit -Hn)", "nproc=8192:8192"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
CONF

if ! answers; then
  cd /  # where it was started from may go away before it does
  CONTAINERS_CONF=$HOME_DIR/containers.conf setsid nohup podman system service --time 0 "unix://$SOCKET" \
    >"$HOME_DIR/service.log" 2>&1 </dev/null &
  for _ in $(seq 100); do answers && break; sleep 0.1; done
  answers || { tail -n 20 "$HOME_DIR/service.log" >&2; refuse "the service did not come up; its log is above"; }
fi
echo "DOCKER_HOST=unix://$SOCKET"
