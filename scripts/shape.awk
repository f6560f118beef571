# Holds the shape of crates/control and crates/daemon, from their sources: `awk -f scripts/shape.awk SRC
# FILE ...`, SRC being the crate's src/.
#
# No struct has more than 12 fields, no type has inherent impl blocks in more than 3 files, folders do not
# import each other in a circle, and only `enforcement/` of control calls an actuator.

BEGIN {
    most_fields = 12
    most_files = 3
    src = ARGV[1]
    delete ARGV[1]
    of_control = src ~ /control\/src$/
}

FNR == 1 {
    path = substr(FILENAME, length(src) + 2)
    folder = path ~ /\// ? substr(path, 1, index(path, "/") - 1) : ""
    in_struct = ""
    is_test = path ~ /tests?\.rs$/
}

/^#\[cfg\(test\)\]/ { is_test = 1 }
is_test { next }

match($0, /^(pub(\([a-z]+\))? )?struct [A-Za-z]+/) {
    in_struct = substr($0, RSTART, RLENGTH)
    sub(/.*struct /, "", in_struct)
    count = 0
    if ($0 !~ /\{$/) in_struct = ""
}
in_struct != "" && /^    (pub(\([a-z]+\))? )?[a-z_]+: / { count++ }
/^}/ && in_struct != "" {
    hold("struct " in_struct, count, "fields", most_fields)
    in_struct = ""
}

/^impl/ && !/ for / {
    type = $0
    sub(/^impl(<[^>]*>)? /, "", type)
    sub(/[< ].*/, "", type)
    if (!((type, FILENAME) in seen)) {
        seen[type, FILENAME] = 1
        impls[type]++
    }
}

/Actuator/ && folder ~ /^(estimation|allocation|task)$/ { wrong(folder "/ knows the actuator: " path) }
of_control && /actuator\.[a-z_]+\(/ && folder != "enforcement" && folder != "run_loop" { wrong("the actuator is called in " path) }

{
    rest = $0
    while (folder != "" && match(rest, /crate::[a-z_]+::/)) {
        other = substr(rest, RSTART + 7, RLENGTH - 9)
        rest = substr(rest, RSTART + RLENGTH)
        if (other != folder) imports[folder, other] = 1
    }
    if (folder != "") folders[folder] = 1
}

function wrong(text) {
    print src ": " text
    failed = 1
}

function hold(what, has, of, most) {
    if (has > most) wrong(what " has " has " " of ", and may have " most)
}

END {
    for (type in impls) hold(type, impls[type], "files with impl blocks", most_files)
    for (pair in imports) {
        split(pair, ends, SUBSEP)
        if (ends[1] in folders && ends[2] in folders) reach[ends[1], ends[2]] = 1
    }
    for (via in folders) for (from in folders) for (to in folders)
        if (reach[from, via] && reach[via, to]) reach[from, to] = 1
    for (folder in folders) if (reach[folder, folder]) wrong(folder "/ is in a circle of imports")
    exit failed
}
