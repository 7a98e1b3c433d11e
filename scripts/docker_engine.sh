#!/usr/bin/env bash
# A Docker engine that answers, with or without systemd: installs Debian's docker.io where there is none, starts dockerd, waits.
# Leaves a running engine alone; run it as often as you like. Needs root only when there is something to install or start.
set -euo pipefail

LOG=${DOCKERD_LOG:-/var/log/benchflow-dockerd.log}
LOCK=${TMPDIR:-/tmp}/benchflow-docker-engine.lock

answers() { command -v docker >/dev/null && docker version --format '{{.Server.Version}}' 2>/dev/null; }
refuse() { echo "docker_engine: $1" >&2; exit 3; }

install() {
  command -v apt-get >/dev/null || refuse "no dockerd, and no apt-get to install it with: install Docker yourself"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io iptables >/dev/null
}

start() {
  # The bridge must not be wider than the way out: packets of 1500 bytes vanish behind a default route of 1400.
  local device mtu=1500
  device=$(awk '$2 == "00000000" { print $1; exit }' /proc/net/route)
  [ -z "$device" ] || mtu=$(cat "/sys/class/net/$device/mtu")
  # A killed dockerd leaves its pid file behind, and the next one with that number in use refuses to start.
  [ ! -e /var/run/docker.pid ] || kill -0 "$(cat /var/run/docker.pid)" 2>/dev/null || rm -f /var/run/docker.pid
  setsid nohup dockerd --mtu "$mtu" >>"$LOG" 2>&1 </dev/null 9>&- &
  local dockerd=$!
  for _ in $(seq 300); do
    answers >/dev/null && return
    kill -0 "$dockerd" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 20 "$LOG" >&2
  refuse "dockerd did not come up; the end of $LOG is above"
}

if ! answers >/dev/null; then
  [ -z "${DOCKER_HOST:-}" ] || refuse "no engine answers at DOCKER_HOST=$DOCKER_HOST; it is not ours to start"
  [ "$(id -u)" = 0 ] || refuse "no Docker engine answers, and starting one needs root"
  exec 9>"$LOCK"
  flock 9
  if ! answers >/dev/null; then
    command -v dockerd >/dev/null || install
    start
  fi
fi
echo "docker engine $(answers)"
