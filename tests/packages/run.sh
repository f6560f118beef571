#!/usr/bin/env bash
# Tests of what is installed and released, one line each. --quick: only those that take seconds, which `make test`
# runs; else the Debian packages as well, of this commit, on fresh Debians.
#
# usage: tests/packages/run.sh [--quick | --lint]    # --lint: the packages are made and looked at, not installed
set -euo pipefail
cd "$(dirname "$0")/../.."

export TARGET_DIR=${TARGET_DIR:-${CARGO_TARGET_DIR:-target}}
said=$(mktemp)
trap 'rm -f "$said"' EXIT
failed=0

check() { # NAME COMMAND...
    local name=$1 status=0
    shift
    "$@" >"$said" 2>&1 </dev/null || status=$?
    if [ "$status" = 0 ]; then
        echo "test packages::$name ... ok"
    elif [ "$status" = 77 ] && [ -z "${CI-}" ]; then
        echo "test packages::$name ... skipped ($(tail -n 1 "$said"))"
    else
        failed=1
        echo "test packages::$name ... FAILED"
        sed 's/^/     /' "$said"
    fi
}

if [ "${1-}" = --quick ]; then
    check an_installation_has_every_file_and_goes_again tests/packages/installed.sh
    check a_source_tarball_is_the_same_bytes_twice tests/packages/tarball.sh
    check a_version_tells_what_is_released tests/packages/version.sh
    exit "$failed"
fi

deb=$TARGET_DIR/deb
check the_packages_can_be_made scripts/deb.sh
[ "$failed" = 0 ] || exit 1
check lintian_finds_nothing_wrong tests/packages/lintian.sh "$deb"
if [ "${1-}" != --lint ]; then
    check a_fresh_debian_12_installs_serves_and_purges_them tests/packages/fresh.sh bookworm "$deb"
    check a_fresh_debian_13_installs_serves_and_purges_them tests/packages/fresh.sh trixie "$deb"
    check each_rule_names_a_program_as_debian_calls_it tests/packages/rules.sh
    check the_unit_tracks_a_program_in_its_sandbox tests/packages/sandbox.sh "$deb"
    check annotated_pods_of_containerd_are_kept_and_leave_nothing_behind tests/node/run.sh "$TARGET_DIR/release"
    check two_builds_are_the_same_bytes tests/packages/twice.sh "$deb"
    check packages_for_other_machines_can_be_made scripts/packages.sh deb-arm64 arch rpm tarball tarball-arm64 sysext source
    for other in deb-arm64 arch rpm tarball tarball-arm64 sysext source; do
        check "${other}_installs_the_same_files_in_an_empty_root" tests/packages/others.sh "$other" "$TARGET_DIR/packages"
    done
    check the_flake_evaluates_and_installs_what_its_module_names tests/packages/nix.sh
    check a_program_is_reserved_on_an_arm64_kernel tests/packages/emulated.sh "$TARGET_DIR/packages"
    check libonbeat_interrupts_blocks_on_arm64 make --no-print-directory -C libonbeat emulated OUT="$(realpath "$TARGET_DIR")/libonbeat"
    check a_release_is_the_same_bytes_twice tests/packages/release.sh
fi
exit "$failed"
