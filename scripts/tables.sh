#!/usr/bin/env bash
# Checks that each table between <!-- figures: NAME --> and <!-- end --> in an experiment's README is the one that the
# experiment's command wrote there, as NAME.json beside it has it.
#
# usage: scripts/tables.sh [README.md...]
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
    set -- experiments/*/README.md
fi
failed=0
for readme; do
    while read -r name; do
        figures=$(dirname "$readme")/$name.json
        if ! [ -f "$figures" ]; then
            echo "$readme: the table $name has no $figures: run its experiment with --readme" >&2
            failed=1
            continue
        fi
        stands=$(awk -v marker="<!-- figures: $name -->" '
            $0 == marker { inside = 1; next }
            $0 == "<!-- end -->" { inside = 0 }
            inside' "$readme")
        written=$(sed -n 's/^  "block": "\(.*\)",\{0,1\}$/\1/p' "$figures" | sed 's/\\"/"/g; s/\\n/\n/g')
        if [ "$stands" != "$written" ]; then
            echo "$readme: the table $name differs from $figures: run its experiment with --readme, and edit neither" >&2
            failed=1
        fi
    done < <(sed -n 's/^<!-- figures: \(.*\) -->$/\1/p' "$readme")
done
exit $failed
