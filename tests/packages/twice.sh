#!/usr/bin/env bash
# Makes the packages once more, from nothing, in a folder of another name, and compares them with those in a folder.
#
# usage: tests/packages/twice.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."

first=$(realpath "$1")
work=$(mktemp -d "$(dirname "$first")/twice.XXXXXX")
trap 'rm -rf "$work"' EXIT
TARGET_DIR=$work scripts/deb.sh >"$work/log" 2>&1 || {
    tail -n 30 "$work/log"
    exit 1
}
differ=0
for package in "$first"/*.deb "$first"/*.dsc "$first"/*.tar.*; do
    cmp "$package" "$work/deb/$(basename "$package")" || differ=1
done
exit "$differ"
