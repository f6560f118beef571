#!/usr/bin/env bash
# onbeat beside the kernel's own means and beside schedulers of others (sched_ext), on a kernel in virtual time.
#
# Builds scx_lavd, scx_bpfland and scx_flash as they are published, once, into ~/.cache/onbeat/scx; then boots the guest and
# prints a table, the median of the images with the least and the greatest.
#
# usage: papers/experiments/alternatives/run.sh [--kernel WHICH] [--images N]
set -euo pipefail
cd "$(dirname "$0")/../../.."

kernel=first images=3 hogs=4
while [ $# -gt 0 ]; do
    case "$1" in
    --kernel) kernel=$2 && shift 2 ;;
    --images) images=$2 && shift 2 ;;
    *)
        sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2
        exit 2
        ;;
    esac
done

# Their BPF needs clang 18 or newer.
clang=$(command -v clang-19 || command -v clang)
version=1.1.4
scx=${XDG_CACHE_HOME:-$HOME/.cache}/onbeat/scx
for name in scx_lavd scx_bpfland scx_flash; do
    [ -x "$scx/bin/$name" ] || BPF_CLANG=$clang cargo install "$name" --version "$version" --locked --root "$scx"
done
target=${CARGO_TARGET_DIR:-$PWD/target}
cargo build --release -p onbeat

ways='eevdf/nothing eevdf/nice eevdf/slice eevdf/short eevdf/chrt eevdf/onbeat'
for name in scx_bpfland scx_flash scx_lavd; do
    ways="$ways $name/nothing $name/onbeat"
done
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
for ((image = 0; image < images; image++)); do
    ONBEAT_VM_PATH=$target/release:$scx/bin tests/vm/run.sh --kernel "$kernel" --image "$image" --results "$results/$image" \
        --need scx_lavd --need scx_bpfland --need scx_flash --set "WAYS=$ways" --set "HOGS=$hogs" papers/experiments/alternatives/guest.sh >&2
done

table() {
    echo "$images $([ "$images" = 1 ] && echo image || echo images), $hogs hogs, one CPU in virtual time, Linux" \
        "$(cat "$results/0/alternatives/kernel"); scx $version."
    echo
    echo '| scheduler, means | in time: 3.505 ms | 8.220 ms | 100 ms | hogs beside these | film: frames | longest pause | hogs beside the film |'
    echo '|---|---:|---:|---:|---:|---:|---:|---:|'
    cat "$results"/*/alternatives/ways.csv | awk -F , '
        function told(values, scale, unit,    all, n, i, j, t) {
            n = split(values, all, " ")
            for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (all[j] < all[i]) { t = all[i]; all[i] = all[j]; all[j] = t }
            t = sprintf(scale == 10 ? "%.1f" : "%d", all[int((n + 1) / 2)] / scale) unit
            if (n > 1 && all[1] != all[n]) t = t sprintf(scale == 10 ? " (%.1f to %.1f)" : " (%d to %d)", all[1] / scale, all[n] / scale)
            return t
        }
        $1 == "way" { next }
        { if (!($1 in seen)) { seen[$1] = 1; order[++ways] = $1 } for (f = 2; f <= 8; f++) value[$1, f] = value[$1, f] " " $f + 0 }
        END {
            for (w = 1; w <= ways; w++) {
                way = order[w]; name = way; sub("/", ", ", name)
                print "| " name " | " told(value[way, 2], 10, "%") " | " told(value[way, 3], 10, "%") " | " told(value[way, 4], 10, "%") \
                    " | " told(value[way, 5], 1, " ms") " | " told(value[way, 6], 1, "") " | " told(value[way, 7], 1, " ms") " | " told(value[way, 8], 1, " ms") " |"
            }
        }'
}

grep -h 'is not in force' "$results"/*/alternatives/serial.log >&2 || true
table
