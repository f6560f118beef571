#!/usr/bin/env bash
# What every commit must pass beside the tests: format, lints, lines, imports.
set -euo pipefail
cd "$(dirname "$0")/.."

step() {
    echo "== $*"
    "$@"
}

for workspace in . $(find . -maxdepth 1 -name papers); do
    step env -C "$workspace" cargo fmt --all --check
done
step scripts/prose.sh
# In CI, what the tests and the fuzz targets are built with lints them as well.
if [ -z "${CI:-}" ]; then
    for workspace in . $(find . -maxdepth 1 -name papers); do
        step env -C "$workspace" cargo clippy --workspace --all-targets -- -D warnings
    done
    step env RUSTFLAGS='--cfg fuzzing' cargo check --quiet --manifest-path fuzz/Cargo.toml
fi
step scripts/lines.sh
for crate in act control daemon infer sense; do
    mapfile -t sources < <(git ls-files -- "crates/$crate/src/*.rs")
    echo "== imports and shape of $crate"
    awk -v rooms="$([ $crate = daemon ] || echo 1)" -f scripts/imports.awk "crates/$crate/src" "${sources[@]}"
    case $crate in control | daemon) awk -f scripts/shape.awk "crates/$crate/src" "${sources[@]}" ;; esac
done

mapfile -t commented < <(git ls-files -- '*.rs' 'crates/*.[ch]' 'papers/*.[ch]' 'libonbeat/*.[ch]' ':!:*vmlinux.h')
echo "== awk -f scripts/comments.awk, ${#commented[@]} files"
LC_ALL=C awk -f scripts/comments.awk "${commented[@]}"

# vmlinux.h is the kernel's, in its own style.
mapfile -t c_files < <(git ls-files -- '*.c' '*.h' ':!:*vmlinux.h')
if [ ${#c_files[@]} -gt 0 ]; then
    step clang-format --dry-run -Werror "${c_files[@]}"
fi

if command -v shellcheck >/dev/null; then
    # What runs in the virtual machine is written for its small shell, in pieces.
    mapfile -t scripts < <(git ls-files -- '*.sh' .ci/run ':!:tests/vm/cases' ':!:tests/vm/guest' ':!:tests/vm/selftest/*' ':!:papers/vm' ':!:papers/experiments/*/guest.sh')
    step shellcheck "${scripts[@]}"
else
    echo "no shellcheck here: the shell scripts stay unchecked" >&2
fi
echo "all checks passed"
