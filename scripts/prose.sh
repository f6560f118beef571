#!/usr/bin/env bash
# Finds lines of prose wider than 100 columns, outside of tables and code, and a README of more than 110 lines.
#
# usage: scripts/prose.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
    set -- README.md CONTRIBUTING.md ARCHITECTURE.md docs/*.md
    lines=$(wc -l <README.md)
    if [ "$lines" -gt 110 ]; then
        echo "README.md has $lines lines, more than 110: move some to docs/" >&2
        exit 1
    fi
fi

# In every locale and awk a byte is a character: what continues one in UTF-8 is taken out before it is counted.
LC_ALL=C awk '
FNR == 1 { code = 0 }
/^ *```/ { code = !code; next }
code || /^ *\|/ || /^#/ { next }
{
    gsub(/[\200-\277]/, "")
    if (length($0) > 100) {
        print FILENAME ":" FNR ": more than 100 columns"
        failed = 1
    }
}
END { exit failed }
' "$@" >&2
