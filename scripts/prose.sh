#!/usr/bin/env bash
# Counts what can be counted of the rules for prose (CONTRIBUTING.md), in README.md, CONTRIBUTING.md,
# ARCHITECTURE.md and docs/.
#
# usage: scripts/prose.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."

README_LINES=150

if [ $# -eq 0 ]; then
    set -- README.md CONTRIBUTING.md ARCHITECTURE.md docs/*.md
    lines=$(wc -l <README.md)
    if [ "$lines" -ge "$README_LINES" ]; then
        echo "README.md has $lines lines, $README_LINES or more: move some to docs/" >&2
        exit 1
    fi
fi

# In every locale and awk a byte is a character: what continues one in UTF-8 is taken out before it is counted.
LC_ALL=C awk '
function complain(where, what) {
    print where ": " what
    failed = 1
}

# The sentences of a paragraph. A question may begin with Who or What.
function finish(   count, sentence, i) {
    gsub(/[.!?:]\)?[*]* +/, "&\n", paragraph)
    count = split(paragraph, sentence, "\n")
    for (i = 1; i <= count; i++) {
        sub(/^[*(]+/, "", sentence[i])
        if (sentence[i] ~ /^(Who|Whoever|Whom|Whose|What|Whatever) / && sentence[i] !~ /\?[)*]* *$/)
            complain(begin, "the subject is not a noun: " sentence[i])
        if (sentence[i] ~ /^Of /)
            complain(begin, "a sentence begins with Of: " sentence[i])
    }
    paragraph = ""
}

FNR == 1 { finish(); code = 0 }
/^ *```/ { finish(); code = !code; next }
code { next }
/^ *\|/ || /^#/ || /^ *$/ { finish(); next }
/^ *([-*]|[0-9]+\.) / { finish() }
{
    shown = $0
    gsub(/[\200-\277]/, "", shown)
    if (length(shown) > 100)
        complain(FILENAME ":" FNR, "more than 100 columns")
    if (paragraph == "")
        begin = FILENAME ":" FNR
    sub(/^ *(([-*]|[0-9]+\.) )?/, "")
    paragraph = paragraph $0 " "
}
END { finish(); exit failed }
' "$@" >&2
