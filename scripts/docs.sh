#!/usr/bin/env bash
# For installed documents: a link between them holds wherever they lie; one to what is not installed is its
# text, with the path in the source if it is that of a table.
#
# usage: scripts/docs.sh FOLDER
set -euo pipefail
cd "$1"

find . -name '*.md' -printf '%P\n' | while read -r file; do
    awk -v RS='\001' -v ORS='' -v from="$(dirname "$file")" '
        function exists(name) { return system("test -e \"" name "\"") == 0 }
        # The target, as it is or beside this file; nothing if it is nowhere.
        function found(target, of, name) {
            if (target ~ /:\/\// || target ~ /^#/) return target
            of = match(target, /#/) ? substr(target, RSTART) : ""
            sub(/#.*/, "", target)
            if (exists(from "/" target)) return target of
            name = target
            sub(/.*\//, "", name)
            return name != "README.md" && exists(from "/" name) ? name of : ""
        }
        {
            while (match($0, /\[[^][]*\]\([^()]*\)/)) {
                link = substr($0, RSTART, RLENGTH)
                before = substr($0, 1, RSTART - 1)
                $0 = substr($0, RSTART + RLENGTH)
                split(link, part, /\]\(/)
                whole = substr(part[2], 1, length(part[2]) - 1)
                target = found(whole)
                text = substr(part[1], 2)
                if (target != "") text = "[" text "](" target ")"
                else if (sub(/^(\.\.\/)*papers\/experiments/, "papers/experiments", whole)) text = text " (" whole ")"
                if (target == "") sub(/!$/, "", before)
                printf "%s%s", before, text
            }
            print
        }' "$file" >"$file.new"
    mv "$file.new" "$file"
done
