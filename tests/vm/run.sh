#!/usr/bin/env bash
# Boots the test kernel in an emulated machine, runs cases in it, and brings back what they wrote.
#
# On one CPU the guest's clock counts its instructions (virtual time): what else this machine does
# changes nothing, and a run repeats to the byte. With more CPUs it is plain emulation, for races.
#
# A case is a file whose head says what it needs:
#     # needs: onbeat rt-app       programs, or FROM:TO for files, to put into the guest
#     # time: virtual              also with several CPUs, which then share one stream of instructions
#     # cpus: 1                    how many CPUs (default 1)
#     # seconds: 3600              how long the host waits at most (default 1200)
#     # cpufreq: 1000 800 300      the MHz that the CPUs can have (default: no cpufreq)
#     # puts out: yes             the kernel is to put a scheduler out, which is a failure otherwise
#     # long: yes                  left out with --quick
#
# Succeeds if every case ended with 0, and the kernel neither panicked nor warned, nor put a scheduler out.
#
# usage: tests/vm/run.sh [--kernel WHICH] [--results FOLDER] [--set NAME=VALUE]...
#                        [--need WORD]... [--cpus N] [--jobs N] [--image N] [--images N] [--follow] [--quick] [CASE...]
#        CASE is a name in tests/vm/cases or papers/vm, or a path to a .sh file; without one, all of these
#        --kernel    first (the default), second, or another that kernel.sh knows
#        --results   where each case's serial.log and results go, into a folder of its name
#        --set       a variable that the case can read
#        --need      one more of what the head's `needs` can name
#        --cpus      how many CPUs, whatever the head says
#        --jobs      how many machines at a time (default 1)
#        --image     another image than the one numbered 0: as it would be of programs that were built elsewhere
#        --images    each case on the images 0 to N - 1; what it checked is summed up at the end (margins.sh)
#        --follow    shows what the guest says while it runs
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

which_kernel=first results='' all_cpus='' jobs=1 image=0 images=0 follow='' quick=''
settings=() needed=()
while [ $# -gt 0 ]; do
    case "$1" in
    --kernel) which_kernel=$2 && shift 2 ;;
    --results) results=$(realpath -m "$2") && shift 2 ;;
    --set) settings+=("$2") && shift 2 ;;
    --set=*) settings+=("${1#--set=}") && shift ;;
    --need) needed+=("$2") && shift 2 ;;
    --need=*) needed+=("${1#--need=}") && shift ;;
    --cpus) all_cpus=$2 && shift 2 ;;
    --jobs) jobs=$2 && shift 2 ;;
    --image) image=$2 && shift 2 ;;
    --images) images=$2 && shift 2 ;;
    --follow) follow=yes && shift ;;
    --quick) quick=yes && shift ;;
    --*)
        sed -n '/^# usage: /,/^set /{s/^# \{0,1\}//p}' "$0" >&2
        exit 2
        ;;
    *) break ;;
    esac
done

head_of() { # FILE KEY DEFAULT
    local value
    value=$(sed -n "s/^# $2: //p" "$1")
    echo "${value:-$3}"
}

# A case's name; the guest.sh of an experiment is called as the experiment.
name_of() {
    local name
    name=$(basename "$1" .sh)
    [ "$name" != guest ] || name=$(basename "$(dirname "$1")")
    echo "$name"
}

files=()
for word; do
    case "$word" in
    *.sh) files+=("$(realpath "$word")") ;;
    *)
        file=$here/cases/$word.sh
        [ -f "$file" ] || file=$here/../../papers/vm/$word.sh
        files+=("$file")
        ;;
    esac
    if [ ! -f "${files[-1]}" ]; then
        echo "tests/vm: no case '$word': there is no ${files[-1]}" >&2
        exit 2
    fi
done
if [ $# -eq 0 ]; then
    for file in "$here"/cases/*.sh "$here"/../../papers/vm/*.sh; do
        [ -f "$file" ] || continue
        if [ -z "$quick" ] || [ "$(head_of "$file" long no)" != yes ]; then
            files+=("$file")
        fi
    done
fi
cd "$here/../.."
export ONBEAT_VM_PATH=${ONBEAT_VM_PATH:-$PWD/target/release}

seconds_since() {
    awk -v began="$1" -v ended="$(date +%s.%N)" 'BEGIN { printf "%.1f s", ended - began }'
}

began=$(date +%s.%N)
kernel=$("$here/kernel.sh" "$which_kernel")
release=$(cat "$kernel/release")
fetched=$(seconds_since "$began")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$jobs" -gt 1 ] || [ "$images" -gt 0 ]; then
    [ "$images" -eq 0 ] || results=${results:-$work/results}
    again=(--kernel "$which_kernel" ${results:+--results "$results"} "${settings[@]/#/--set=}" "${needed[@]/#/--need=}"
        ${all_cpus:+--cpus "$all_cpus"})
    numbers=("$image") names=()
    if [ "$images" -gt 0 ]; then
        mapfile -t numbers < <(seq 0 $((images - 1)))
        # What earlier runs have left of these cases is not to be summed up with this one.
        for file in "${files[@]}"; do
            names+=("$(name_of "$file")")
            rm -rf "${results:?}/${names[-1]}" "$results/${names[-1]}"-image-*
        done
    fi
    status=0
    for file in "${files[@]}"; do
        for number in "${numbers[@]}"; do
            printf '%s\0' --image "$number" "$file"
        done
    done | xargs -0 -n 3 -P "$jobs" "$here/run.sh" "${again[@]}" || status=$?
    [ "$images" -eq 0 ] || "$here/margins.sh" "$results" "${names[@]}"
    exit "$status"
fi

# Quoted for the guest's shell.
quote="'\\''"
for setting in "${settings[@]}"; do
    value=${setting#*=}
    printf "export %s='%s'\n" "${setting%%=*}" "${value//\'/$quote}"
done >"$work/settings"
# Programs that were built elsewhere are loaded elsewhere and take another time to start: they meet the kernel's tick of
# 4 ms at another phase, which a golden share of it makes a different one for each image.
[ "$image" = 0 ] || echo "usleep $((image * 2472 % 4000))" >>"$work/settings"

# What the kernel must not say in a case, whatever the case itself thinks of it.
complaints='Kernel panic|WARNING: |BUG: |Oops: |rcu: INFO: .*stall|general protection fault'
# The same in the kernel's taint flags, should the words be lost: it died, it warned.
tainted_by_complaints=$((1 << 7 | 1 << 9))
# The kernel's watchdog, or another error, has ended a scheduler of sched_ext: no other end is told at this level.
put_out='sched_ext: BPF scheduler .* disabled'

# Why this is the log of a failure; nothing if it is not.
verdict() { # LOG EMULATOR-STATUS SECONDS FILE
    local tainted
    tainted=$(sed -n 's/^onbeat-vm-tainted: \([0-9]*\)$/\1/p' "$1")
    if grep -qE "$complaints" "$1"; then
        echo "the kernel complained: $(grep -m1 -oE "($complaints).*" "$1")"
    elif [ -z "$(head_of "$4" 'puts out' '')" ] && grep -qE "$put_out" "$1"; then
        echo "the kernel put a scheduler out: $(grep -m1 -oE "$put_out.*" "$1")"
    elif [ "$2" = 124 ]; then
        echo "no end after $3 s"
    elif ! grep -q '^onbeat-vm-case-ended: ' "$1"; then
        echo "the guest ended without saying how (emulator's status $2)"
    elif ! grep -q '^onbeat-vm-case-ended: 0$' "$1"; then
        echo "the case ended with $(sed -n 's/^onbeat-vm-case-ended: //p' "$1")"
    elif [ $((${tainted:-0} & tainted_by_complaints)) != 0 ]; then
        echo "the kernel is tainted by a warning or an oops: $tainted"
    elif [ "$2" != 0 ]; then
        echo "the emulator ended with $2"
    fi
}

# The case in its machine: leaves the console's text in $work/log, and gives the emulator's status.
boot() { # FILE SECONDS
    local file=$1 seconds=$2 cpus frequencies status=0 follower=
    cpus=${all_cpus:-$(head_of "$file" cpus 1)}
    local parameters="console=ttyS0 loglevel=5 panic=-1 oops=panic rdinit=/init nokaslr"
    # Unpacking certificates and gathering entropy are half of what a boot costs; tests of ciphers go on beside a case.
    parameters+=" initcall_blacklist=load_system_certificate_list,jent_mod_init cryptomgr.notests=1"
    local machine=(-machine q35 -accel "tcg,thread=single" -m 1024 -smp "$cpus")
    read -ra frequencies <<<"$(head_of "$file" cpufreq '')"
    if [ ${#frequencies[@]} -gt 0 ]; then
        # Of a processor that the driver takes for one of those that it knows.
        "$here/cpufreq.sh" "$work/cpufreq.aml" "${frequencies[@]}"
        machine+=(-cpu "max,vendor=GenuineIntel,family=6,model=15" -acpitable "file=$work/cpufreq.aml")
    else
        machine+=(-cpu max)
    fi
    if [ "$cpus" = 1 ] || [ "$(head_of "$file" time '')" = virtual ]; then
        machine+=(-icount "shift=1,sleep=off" -seed "$((image + 1))" -rtc "base=2024-01-01T00:00:00,clock=vm")
    else
        # In the host's time a host that stalls looks like a guest that does.
        parameters+=" nowatchdog rcupdate.rcu_cpu_stall_suppress=1 no_timer_check"
    fi
    : >"$work/serial"
    : >"$work/archive"
    if [ -n "$follow" ]; then
        tail -qf "$work/serial" > >(sed -u 's/\r$//; s/^/     | /') &
        follower=$!
    fi
    timeout --foreground --kill-after 10 "$seconds" qemu-system-x86_64 "${machine[@]}" -nodefaults -no-user-config -display none \
        -no-reboot -serial "file:$work/serial" -serial "file:$work/archive" \
        -kernel "$kernel/vmlinux" -initrd "$work/initrd" \
        -append "$parameters" || status=$?
    [ -z "$follower" ] || kill "$follower"
    tr -d '\r' <"$work/serial" >"$work/log"
    return "$status"
}

# Called where a failure does not end this script.
keep_results() { # FOLDER
    rm -rf "$1" && mkdir -p "$1" && cp "$work/log" "$1/serial.log" || return
    [ ! -s "$work/archive" ] || tar -xzf "$work/archive" -C "$1"
}

run_case() { # FILE
    local file=$1 name seconds words began packed why status=0
    name=$(name_of "$file")
    [ "$image" = 0 ] || name+=-image-$image
    seconds=$(head_of "$file" seconds 1200)
    read -ra words <<<"$(head_of "$file" needs '')"
    began=$(date +%s.%N)
    : >"$work/log"
    if "$here/initrd.sh" "$work/initrd" "$kernel" "$file" "$work/settings:settings.sh" "${words[@]}" "${needed[@]}"; then
        packed=$(seconds_since "$began")
        began=$(date +%s.%N)
        boot "$file" "$seconds" || status=$?
        why=$(verdict "$work/log" "$status" "$seconds" "$file")
        if [ -n "$results" ] && ! keep_results "$results/$name"; then
            why=${why:-its results did not arrive whole}
        fi
    else
        why="the initrd cannot be packed"
    fi
    {
        printf 'test vm %s: %s ... %s\n' "$release" "$name" "$([ -z "$why" ] && echo ok || echo FAILED)"
        echo "     (kernel $fetched, initrd ${packed:--}, boot and case $(seconds_since "$began"))"
        if [ -n "$why" ]; then
            echo "     $why"
            if [ -z "$follow" ]; then
                echo "     what the guest said:"
                tail -n 60 "$work/log" | sed 's/^/     | /'
            fi
        fi
    } >"$work/told"
    # In one piece, also beside other machines: this file is what they have in common.
    flock "$0" cat "$work/told"
    [ -z "$why" ]
}

failed=0
for file in "${files[@]}"; do
    run_case "$file" || failed=$((failed + 1))
done
exit $((failed > 0))
