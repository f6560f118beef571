# Holds where tuned constants are: `awk -f scripts/tuning.awk FILE ...`, FILE being all sources of crates.
#
# In a crate with a tuning.rs, a constant that is a Span, a Duration or an f64, or is called the most,
# least, fewest, longest or shortest of something, is in that file. There each one has the test that fails
# when it is doubled or halved, which must exist, or its derivation ("From:"). A unit (ONE) is no tuning.
# `infer` is held by experiments/period-accuracy instead, where each of its constants is changed in turn.

FNR == 1 {
    crate = FILENAME
    sub(/\/(src|tests|benches)\/.*/, "", crate)
    is_tuning = FILENAME ~ /src\/tuning\.rs$/
    is_test = FILENAME !~ /\/src\// || FILENAME ~ /tests?\.rs$/ || FILENAME ~ /\/tests\//
    doc = ""
    if (is_tuning) tuned[crate] = 1
    is_skipped = crate ~ /infer$/
}

/^#\[cfg\(test\)\]/ { is_test = 1 }

/fn [a-z_0-9]+[(<]/ {
    name = $0
    sub(/.*fn /, "", name)
    sub(/[(<].*/, "", name)
    functions[name] = 1
}

/^ *\/\/\// {
    line = $0
    sub(/^ *\/\/\/ ?/, "", line)
    doc = doc " " line
    next
}

!is_test && !is_skipped && /^ *(pub(\([a-z]+\))? )?const [A-Z_0-9]+: / {
    name = $0
    sub(/^.*const /, "", name)
    type = name
    sub(/:.*/, "", name)
    sub(/^[^:]*: /, "", type)
    value = type
    sub(/ =.*/, "", type)
    sub(/^[^=]*= /, "", value)
    if (is_tuning) {
        if (doc !~ /(Tests?|From): /) wrong(crate, name " has neither a test nor a derivation")
        if (match(doc, /Tests?: `[a-z_0-9]+`/)) {
            test = substr(doc, RSTART, RLENGTH - 1)
            sub(/.*`/, "", test)
            tests[crate ", " name] = test
        }
    } else if (value ~ /[0-9]/ && name != "ONE" && (type ~ /^(Span|Duration|f64)$/ || name ~ /^(MOST|LEAST|FEWEST|LONGEST|SHORTEST)(_|$)/)) {
        outside[FILENAME ": " name] = crate
    }
}

{ doc = "" }

function wrong(where, text) {
    print where ": " text
    failed = 1
}

END {
    for (place in outside) if (outside[place] in tuned) wrong(place, "belongs in the crate's tuning.rs")
    for (place in tests) if (!(tests[place] in functions)) wrong(place, "there is no test " tests[place])
    exit failed
}
