#!/bin/sh
# Runs a program in a control group of the greatest weight, beside that of the hogs.
set -e
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
    group=/sys/fs/cgroup/strangers weight=cpu.weight most=10000
else
    group=/sys/fs/cgroup/cpu/strangers weight=cpu.shares most=262144
fi
mkdir -p "$group"
echo "$most" >"$group/$weight"
echo $$ >"$group/cgroup.procs"
exec "$@"
