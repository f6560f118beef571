# Holds that no files of a crate import each other in a circle: `awk -f scripts/imports.awk SRC FILE ...`,
# SRC being the crate's src/. Tests do not count, nor does a file's naming of its submodules by `mod`. With
# `-v rooms=1` circles within a folder, as of a type whose `impl` is in several files, may stay.

BEGIN {
    src = ARGV[1]
    delete ARGV[1]
}

FNR == 1 {
    path = substr(FILENAME, length(src) + 2)
    is_test = path ~ /tests?(\/.*)?\.rs$/
    own = path
    sub(/\.rs$/, "", own)
    sub(/(^|\/)(mod|lib)$/, "", own)
    gsub(/\//, "::", own)
    parent = own
    if (!sub(/::[^:]*$/, "", parent)) parent = ""
    if (!is_test) files[own] = path
}
/^#\[cfg\(test\)\]/ { is_test = 1 }
is_test || /^ *\/\// { next }
{
    rest = $0
    gsub(/"[^"]*"/, "", rest)
    while (match(rest, /[a-z_]+(::[A-Za-z_]+)+/)) {
        named = substr(rest, RSTART, RLENGTH)
        before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : ""
        rest = substr(rest, RSTART + RLENGTH)
        if (before ~ /[:A-Za-z]/) continue
        if (named ~ /^crate::/) sub(/^crate::/, "", named)
        else if (named ~ /^super::/) sub(/^super::/, parent == "" ? "" : parent "::", named)
        else if (own != "") named = own "::" named
        names[own, named] = 1
    }
    # What is imported of the file itself, in braces or not.
    if (match($0, /^(pub(\([a-z]+\))? )?use super::[{A-Z]/)) names[own, parent] = 1
}

function room(path) {
    sub(/(\/.*|\.rs)$/, "", path)
    return path
}

END {
    for (pair in names) {
        split(pair, ends, SUBSEP)
        to = ends[2]
        while (!(to in files) && sub(/::[^:]*$/, "", to)) {}
        # The root names its modules, and nothing is imported of it.
        if (to in files && to != ends[1] && to != "" && ends[1] != "") imports[ends[1], to] = reach[ends[1], to] = 1
    }
    for (via in files) for (from in files) if (reach[from, via]) for (to in files)
        if (reach[via, to]) reach[from, to] = 1
    for (pair in imports) {
        split(pair, ends, SUBSEP)
        if (reach[ends[2], ends[1]] && !(rooms && room(files[ends[1]]) == room(files[ends[2]]))) {
            print src ": " files[ends[1]] " imports " files[ends[2]] ", which imports it"
            failed = 1
        }
    }
    exit failed
}
