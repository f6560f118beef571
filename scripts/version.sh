#!/usr/bin/env bash
# Prints the version of what is checked out: the workspace's if CHANGELOG.md begins with it; before a release
# that version with ~git, the commit's time and its name behind it, which Debian sorts before the release.
#
# usage: scripts/version.sh [--released]    # --released: fails before a release
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
head=$(sed -n 's/^## \[\(.*\)\].*/\1/p' CHANGELOG.md | head -n 1)
if [ "$head" = "$version" ]; then
    echo "$version"
elif [ "${1-}" = --released ]; then
    echo "CHANGELOG.md begins with [$head], Cargo.toml has $version: give the changes their version and date," \
        "'## [$version] - $(date -u +%Y-%m-%d)', commit, and try again" >&2
    exit 1
elif git rev-parse --quiet --verify HEAD >/dev/null 2>&1; then
    echo "$version~git$(TZ=UTC git log -1 --format=%cd.%h --abbrev=8 --date=format-local:%Y%m%d%H%M)"
else
    echo "$version~unreleased"
fi
