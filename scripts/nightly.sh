#!/usr/bin/env bash
# The long forms of the tests, as root: a million hostile calls, a thousand kills at random moments, storms of programs, an hour
# of programs that come and go, all builds of libonbeat with each compiler and tool, the packages, the documentation, the
# cases on several kernels, and a hundred million inputs for each fuzz target. Each part is run, whatever the others say. All
# but the last two parts take a night; FUZZ_LONGEST bounds the inputs, in seconds, for each target.
#
# usage: scripts/nightly.sh [PART...]    a part is hostile, killed, storms, soak, libonbeat, packages, docs, vm or fuzz; without one, all
set -euo pipefail
cd "$(dirname "$0")/.."

: "${HOSTILE_CALLS:=1000000}" "${KILLS:=1000}" "${SOAK_MINUTES:=60}" "${FUZZ_RUNS:=100000000}" "${FUZZ_LONGEST:=86400}" "${STORMS:=20}"
[ $# -gt 0 ] || set -- hostile killed storms soak libonbeat packages docs vm fuzz

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

in_both() { # COMMAND...
    RUSTDOCFLAGS='-D warnings' "$@" && (cd papers && RUSTDOCFLAGS='-D warnings' "$@")
}

release() {
    cargo build --release -p onbeat && (cd papers && cargo build --release -p onbeat-experiments -p onbeat-lab)
}

storms() {
    for _ in $(seq "$STORMS"); do
        cargo test -p onbeat --test daemon storm -- --nocapture || return
    done
}

failed=''
for part; do
    echo "nightly: $part, from $(date +%H:%M:%S)"
    case "$part" in
    hostile) cargo build -p onbeat --examples &&
        ONBEAT_HOSTILE_CALLS=$HOSTILE_CALLS cargo test -p onbeat --test daemon hostile -- --nocapture ;;
    killed) cargo build -p onbeat --examples &&
        ONBEAT_KILLS=$KILLS cargo test -p onbeat --test daemon killed -- --nocapture ;;
    soak) cargo build -p onbeat --examples &&
        ONBEAT_SOAK_MINUTES=$SOAK_MINUTES cargo test -p onbeat --test daemon soak -- --nocapture ;;
    storms) cargo build -p onbeat --examples &&
        storms ;;
    libonbeat) make --no-print-directory -C libonbeat test-rest OUT="$target/libonbeat" &&
        make --no-print-directory -C libonbeat emulated NOTIFY=linux OUT="$target/libonbeat" &&
        make --no-print-directory -C libonbeat emulated NOTIFY=posix OUT="$target/libonbeat" &&
        make --no-print-directory -C libonbeat/examples/player test SANITIZE=address OUT="$target/libonbeat" ;;
    packages) cargo build --release -p onbeat -p onbeat-node &&
        TARGET_DIR=$target tests/packages/run.sh ;;
    docs) in_both cargo doc --workspace --no-deps &&
        in_both cargo clippy --workspace --all-targets -- -D warnings ;;
    vm) release &&
        ONBEAT_VM_PATH=$target/release tests/vm/nightly.sh ;;
    fuzz) scripts/fuzz.sh "$FUZZ_LONGEST" "$FUZZ_RUNS" ;;
    *)
        echo "there is no part $part: there are hostile, killed, storms, soak, libonbeat, packages, docs, vm and fuzz" >&2
        exit 2
        ;;
    esac || failed+=" $part"
done
[ -z "$failed" ] || {
    echo "nightly: failed:$failed" >&2
    exit 1
}
