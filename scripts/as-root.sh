#!/usr/bin/env bash
# Runs a command as root: as it is if we are, through sudo if not. Says so before a password is asked.
set -euo pipefail

if [ "$(id -u)" -eq 0 ]; then
    exec "$@"
elif command -v sudo >/dev/null; then
    echo "needs root (SCHED_DEADLINE, BPF): running through sudo: $*" >&2
    exec sudo --preserve-env=CI,DEBIAN_FRONTEND "$@"
else
    echo "needs root (SCHED_DEADLINE, BPF) and there is no sudo: run as root: $*" >&2
    exit 1
fi
