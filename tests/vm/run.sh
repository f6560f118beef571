#!/usr/bin/env bash
# Boots the test kernel in an emulated machine, runs one case in it, and brings back what it wrote.
#
# On one CPU the guest's clock counts its instructions (virtual time): what else this machine does
# changes nothing, and a run repeats to the byte. With more CPUs it is plain emulation, for races.
#
# A case is a file in tests/vm/cases whose head says what it needs:
#     # needs: onbeat rt-app       programs, or FROM:TO for files, to put into the guest
#     # cpus: 1                    how many CPUs (default 1)
#     # seconds: 60                how long the host waits at most (default 120)
#     # cpufreq: 1000 800 300      the MHz that the CPUs can have (default: no cpufreq)
#
# Succeeds if the case ended with 0, and the kernel neither panicked nor warned.
#
# usage: tests/vm/run.sh [--kernel first|second] [--results FOLDER] [CASE...]
#        (a case by its name; without one, all of them)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

which_kernel=first
results=
while [ $# -gt 0 ]; do
    case "$1" in
    --kernel) which_kernel=$2 && shift 2 ;;
    --results) results=$2 && shift 2 ;;
    --*)
        sed -n 's/^# usage: //p' "$0" >&2
        exit 2
        ;;
    *) break ;;
    esac
done
if [ $# -eq 0 ]; then
    for file in "$here"/cases/*.sh; do
        set -- "$@" "$(basename "$file" .sh)"
    done
fi

kernel=$("$here/kernel.sh" "$which_kernel")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

head_of() {
    sed -n "s/^# $2: //p" "$1"
}

# What the kernel must not say in a case, whatever the case itself thinks of it.
complaints='Kernel panic|WARNING: |BUG: |Oops: |rcu: INFO: .*stall|general protection fault'

run_case() {
    local file=$1 name cpus seconds words frequencies status=0 began ended
    name=$(basename "$file" .sh)
    cpus=$(head_of "$file" cpus)
    seconds=$(head_of "$file" seconds)
    read -ra words <<<"$(head_of "$file" needs)"
    "$here/initrd.sh" "$work/initrd" "$kernel" "$file" "${words[@]}"
    local machine=(-machine q35 -accel "tcg,thread=single" -m 1024 -smp "${cpus:-1}")
    read -ra frequencies <<<"$(head_of "$file" cpufreq)"
    if [ ${#frequencies[@]} -gt 0 ]; then
        # Of a processor that the driver takes for one of those that it knows.
        "$here/cpufreq.sh" "$work/cpufreq.aml" "${frequencies[@]}"
        machine+=(-cpu "max,vendor=GenuineIntel,family=6,model=15" -acpitable "file=$work/cpufreq.aml")
    else
        machine+=(-cpu max)
    fi
    if [ "${cpus:-1}" = 1 ]; then
        machine+=(-icount "shift=1,sleep=off" -seed 1 -rtc "base=2024-01-01T00:00:00,clock=vm")
    fi
    began=$(date +%s.%N)
    : >"$work/archive"
    timeout "${seconds:-120}" qemu-system-x86_64 "${machine[@]}" -nodefaults -no-user-config -display none \
        -no-reboot -serial "file:$work/serial" -serial "file:$work/archive" \
        -kernel "$kernel/vmlinux" -initrd "$work/initrd" \
        -append "console=ttyS0 quiet panic=-1 oops=panic rdinit=/init nokaslr" || status=$?
    ended=$(date +%s.%N)
    tr -d '\r' <"$work/serial" >"$work/log"
    if [ -n "$results" ]; then
        mkdir -p "$results/$name"
        cp "$work/log" "$results/$name/serial.log"
        [ ! -s "$work/archive" ] || tar -xzf "$work/archive" -C "$results/$name"
    fi
    local why=
    if [ "$status" = 124 ]; then
        why="no end after ${seconds:-120} s"
    elif grep -qE "$complaints" "$work/log"; then
        why="the kernel complained: $(grep -m1 -oE "($complaints).*" "$work/log")"
    elif ! grep -q '^onbeat-vm-case-ended: ' "$work/log"; then
        why="the guest ended without saying how (emulator's status $status)"
    elif ! grep -q '^onbeat-vm-case-ended: 0$' "$work/log"; then
        why="the case ended with $(sed -n 's/^onbeat-vm-case-ended: //p' "$work/log")"
    fi
    printf 'test vm %s: %s ... %s\n' "$(cat "$kernel/release")" "$name" "$([ -z "$why" ] && echo ok || echo FAILED)"
    printf '     (%.1f s)\n' "$(awk -v began="$began" -v ended="$ended" 'BEGIN { print ended - began }')"
    if [ -n "$why" ]; then
        echo "     $why; what the guest said:"
        tail -n 60 "$work/log"
        return 1
    fi
}

failed=0
for name; do
    if [ ! -f "$here/cases/$name.sh" ]; then
        echo "tests/vm: no case '$name' in $here/cases" >&2
        exit 2
    fi
    run_case "$here/cases/$name.sh" || failed=$((failed + 1))
done
exit $((failed > 0))
