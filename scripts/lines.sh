#!/usr/bin/env bash
# Holds the lines of product code, by crate, and of all tests, against scripts/lines.txt: they may only fall.
# Comments and blank lines count.
#
# usage: scripts/lines.sh                    fails where there are more than the file says
#        scripts/lines.sh --write            lowers the file's numbers to what there is
#        scripts/lines.sh --write --raise ROW...  and raises those of these rows
set -euo pipefail
cd "$(dirname "$0")/.."
file=scripts/lines.txt
write='' raised=' '
while [ $# -gt 0 ]; do
    case $1 in
    --write) write=1 ;;
    --raise) shift && raised=" $* " && break ;;
    *)
        sed -n '5,7s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done

# A row is a crate, another folder that is named here, or `tests`: tests, benches, fuzz targets, and `mod tests` in crates.
counted() {
    local rows
    rows=$(git ls-files -- '*/Cargo.toml' | xargs dirname | tr '\n' ' ')
    git ls-files -- '*.rs' '*.c' '*.h' '*.hpp' '*.css' '*.js' '*.proto' '*.py' '*.sh' ':!:*vmlinux.h' |
        xargs -x -n 9999 -d '\n' awk -v rows="$rows libonbeat papers/schedulers python" '
        FNR == 1 {
            inside = is_marked = 0
            in_tests = FILENAME ~ /(^|\/)(tests|benches|fuzz|papers\/vm)(\/|\.rs$)/
            row = FILENAME
            while (sub(/\/[^\/]*$/, "", row) && !index(" " rows " ", " " row " ")) {}
            is_counted = index(" " rows " ", " " row " ")
        }
        in_tests { count["tests"]++; next }
        !is_counted { next }
        is_marked && /^mod [a-z_]+ \{/ { count["tests"]++; count[row]--; inside = 1 }
        { is_marked = /^#\[cfg\(test\)\]/ }
        inside { count["tests"]++; if (/^}/) inside = 0; next }
        { count[row]++ }
        END { for (row in count) print row, count[row] }' | LC_ALL=C sort
}

now=$(counted)
awk -v file="$file" -v write="$write" -v raised="$raised" '
    BEGIN { while ((getline line < file) > 0) { split(line, of, " "); most[of[1]] = of[2] } }
    {
        has = $2
        if ($1 != "tests") sum[$1 ~ /^papers/] += has
        if (has > most[$1] && index(raised, " " $1 " ")) most[$1] = has
        if (has > most[$1]) {
            print "lines: " $1 " has " has " lines, and may have " most[$1] + 0 ": take some out" > "/dev/stderr"
            failed = 1
        } else if (has < most[$1] && !write) {
            print "lines: " $1 " has " has " lines, " most[$1] - has " fewer than before: scripts/lines.sh --write"
        }
        if (most[$1] != "") rows[++n] = $1 " " (has < most[$1] ? has : most[$1])
    }
    END {
        print "lines: " sum[0] " of product, " sum[1] " of papers"
        if (write) { printf "" > file; for (i = 1; i <= n; i++) print rows[i] > file }
        exit failed
    }' <<<"$now"
