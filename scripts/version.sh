#!/usr/bin/env bash
# Prints the version of what is checked out: the workspace's, if CHANGELOG.md has its section and no change above it.
# Else the commit's time and name come behind it, so that Debian sorts it where it belongs: before the version that is
# to come (~git), or after the one that is out (+git).
#
# usage: scripts/version.sh [--released]    # --released: fails if it is no release
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
head=$(sed -n 's/^## \[\([0-9].*\)\].*/\1/p' CHANGELOG.md | head -n 1)
behind='~'
[ "$head" != "$version" ] || behind=+
# What is told under [Unreleased].
if awk '/^## \[/ { inside = /Unreleased/ } !/^## \[/ && inside && NF { found = 1 } END { exit !found }' CHANGELOG.md; then
    head=Unreleased
fi
if [ "$head" = "$version" ]; then
    echo "$version"
elif [ "${1-}" = --released ]; then
    echo "CHANGELOG.md begins with [$head], Cargo.toml has $version: give the changes their version and date," \
        "'## [$version] - $(date -u +%Y-%m-%d)', commit, and try again" >&2
    exit 1
elif git rev-parse --quiet --verify HEAD >/dev/null 2>&1; then
    echo "$version${behind}git$(TZ=UTC git log -1 --format=%cd.%h --abbrev=8 --date=format-local:%Y%m%d%H%M)"
else
    echo "$version${behind}unreleased"
fi
