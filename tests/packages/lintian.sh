#!/usr/bin/env bash
# Fails if lintian has an error or a warning for the packages in a folder.
#
# usage: tests/packages/lintian.sh FOLDER
set -euo pipefail

if ! command -v lintian >/dev/null; then
    echo "no lintian here: install it"
    exit 77
fi
# It would rather not run as root.
run=()
if [ "$(id -u)" -eq 0 ]; then
    run=(setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/nonexistent)
fi
copies=$(mktemp -d)
trap 'rm -rf "$copies"' EXIT
find "$1" -maxdepth 1 -type f -exec cp {} "$copies" \;
chmod -R a+rX "$copies"
"${run[@]}" lintian --fail-on error,warning --tag-display-limit 0 --profile debian "$copies"/*.changes
