#!/usr/bin/env bash
# Checks the tables of the experiments' READMEs.
#
# 1. A table between <!-- figures: NAME --> and <!-- end --> is the one that the experiment's command
#    wrote there, as NAME.json beside it has it.
# 2. Below each table of figures (one with a column that is aligned to the right) a line names the
#    code that it measures. A table is older than its code where the hash has changed; then the
#    README has to say so to its reader:
#
#        <!-- measures: HASH PATH... -->
#        Of COMMIT; the code has changed since. <!-- measures: older PATH... -->
#        <!-- measures: remade -->    a part of it is made again by a test (assert_kept)
#
#    `product` as a PATH is the crates that follow and reserve. Comments, tests and empty lines do
#    not count.
#
# usage: scripts/tables.sh [README.md...]
#        scripts/tables.sh --older [README.md...]    lets older tables say that they are
#        scripts/tables.sh --retaken README.md NAME  the table NAME is of today's code
set -euo pipefail
cd "$(dirname "$0")/.."

PRODUCT=(crates/act crates/control crates/decide crates/infer crates/model crates/sense)

complain() {
    echo "$*" >&2
    failed=1
}

# hash_of PATH...: of the code there, without comments, tests and empty lines.
hash_of() {
    local paths=() path
    for path; do
        if [ "$path" = product ]; then
            paths+=("${PRODUCT[@]}")
        else
            paths+=("$path")
        fi
    done
    for path in "${paths[@]}"; do
        if ! [ -e "$path" ]; then
            echo "there is no $path" >&2
            return 1
        fi
    done
    # shellcheck disable=SC2016
    git ls-files -- "${paths[@]}" |
        grep -vE '(^|/)(tests|benches|examples)(/|\.rs$)|\.(md|json|png|svg)$' |
        LC_ALL=C sort | LC_ALL=C xargs -d '\n' sed -sE -e '/^mod tests \{$/,$d' -e '/^[[:space:]]*(\/\/|# |\*|\/\*|$)/d' |
        sha256sum | cut -c 1-12
}

# written README: the tables between markers are those that the commands wrote.
written() {
    local readme=$1 name figures stands written
    while read -r name; do
        figures=$(dirname "$readme")/$name.json
        if ! [ -f "$figures" ]; then
            complain "$readme: the table $name has no $figures: run its experiment with --readme"
            continue
        fi
        stands=$(awk -v marker="<!-- figures: $name -->" '
            $0 == marker { inside = 1; next }
            $0 == "<!-- end -->" { inside = 0 }
            inside' "$readme")
        written=$(sed -n 's/^  "block": "\(.*\)",\{0,1\}$/\1/p' "$figures" | sed 's/\\"/"/g; s/\\n/\n/g')
        if [ "$stands" != "$written" ]; then
            complain "$readme: the table $name differs from $figures: run its experiment with --readme, and edit neither"
        fi
    done < <(sed -n 's/^<!-- figures: \(.*\) -->$/\1/p' "$readme")
}

# named README: tables of figures name their code before the next heading.
named() {
    awk -v readme="$1" '
        function complain() { print readme ":" table ": below this table nothing names the code that it measures: see scripts/tables.sh" }
        /^\|[-| :]*-:/ { if (!table) table = FNR; next }
        /^#/ { if (table) complain(); table = 0 }
        /<!-- measures: .* -->$/ { table = 0 }
        END { if (table) complain() }' "$1"
}

# aged README OLDER: each table is of its code, or says that it is older. With OLDER it is made to say so.
aged() {
    local readme=$1 older=$2 number line marker what paths commit current folder
    while IFS=: read -r number line; do
        marker=${line##*<!-- measures: }
        read -r what paths <<<"${marker% -->}"
        case $what in
        remade)
            folder=$(basename "$(dirname "$readme")")
            if ! grep -rl 'assert_kept(' experiments/src | xargs grep -qE "\"${folder}[/\"]"; then
                complain "$readme:$number: no test makes a table of $folder again"
            fi
            ;;
        older)
            if ! grep -qE '^Of [0-9a-f]{7,}[^;]*; the code has changed since\. <!--' <<<"$line"; then
                complain "$readme:$number: an older table begins this line with 'Of COMMIT; the code has changed since.'"
            fi
            ;;
        *)
            # shellcheck disable=SC2086
            current=$(hash_of $paths) || { complain "$readme:$number: see there" && continue; }
            [ "$what" != "$current" ] || continue
            if $older; then
                commit=$(head -n "$number" "$readme" | sed -n 's/^Commit \([0-9a-f]*\).*/\1/p' | tail -n 1)
                commit=${commit:-$(git blame -s --abbrev=6 -L "$number,$number" -- "$readme" | cut -c 1-7)}
                sed -i "${number}s|.*|Of $commit; the code has changed since. <!-- measures: older $paths -->|" "$readme"
                echo "$readme:$number: says that it is older than its code"
            else
                complain "$readme:$number: the table above is older than the code that it measures: take it again" \
                    "(then: scripts/tables.sh --retaken), or let it say so with scripts/tables.sh --older"
            fi
            ;;
        esac
    done < <(grep -nE '<!-- measures: .* -->$' "$readme")
}

# retaken README NAME: the table has the hash of today's code.
retaken() {
    local readme=$1 name=$2 number paths
    number=$(awk -v marker="<!-- figures: $name -->" '
        $0 == marker { inside = 1 }
        inside && /<!-- measures: .* -->$/ { print FNR; exit }' "$readme")
    if [ -z "$number" ]; then
        echo "$readme: below the table $name nothing names the code that it measures" >&2
        return 1
    fi
    paths=$(sed -n "${number}s/.*<!-- measures: [^ ]*\(.*\) -->\$/\1/p" "$readme")
    if [ -n "$paths" ]; then
        # shellcheck disable=SC2086
        sed -i "${number}s|.*|<!-- measures: $(hash_of $paths)$paths -->|" "$readme"
    fi
}

if [ "${1-}" = --retaken ]; then
    retaken "$2" "$3"
    exit
fi
older=false
if [ "${1-}" = --older ]; then
    older=true
    shift
fi
if [ $# -eq 0 ]; then
    set -- experiments/*/README.md
fi
failed=0
for readme; do
    written "$readme"
    unnamed=$(named "$readme")
    if [ -n "$unnamed" ]; then
        complain "$unnamed"
    fi
    aged "$readme" $older
done
exit $failed
