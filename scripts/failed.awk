# Of the output of scripts/test.sh: each test that failed, with what it said, in 60 lines at most.
#
# A Rust test's output stands where its test binary lists its failures; that of all others is indented below their line.

function begin(of) {
    finish()
    name = of
}

function add(text) {
    if (text ~ /[^ ]/) {
        said[++lines] = substr(text, 1, 400)
    }
}

# Of what is too long, its first third and its end.
function finish(    first, i) {
    if (lines > 0) {
        print "\n== " name
        first = lines > most ? int(most / 3) : lines
        for (i = 1; i <= first; i++) {
            print said[i]
        }
        if (lines > most) {
            print "     [" lines - most " lines are left out]"
            for (i = lines - most + first + 1; i <= lines; i++) {
                print said[i]
            }
        }
    }
    lines = 0
}

BEGIN {
    most = 60
}

/^ *(Running|Doc-tests) / {
    binary = $0
    sub(/^ *(Running )?/, "", binary)
    sub(/ \(.*/, "", binary)
}

/^failures:$/ {
    finish()
    name = ""
    in_failures = 1
    next
}

in_failures && /^test result: / {
    finish()
    in_failures = 0
}

in_failures {
    if (/^---- .* stdout ----$/) {
        sub(/^---- /, "")
        sub(/ stdout ----$/, "")
        begin($0 " (" binary ")")
    } else if (name != "" && !/^    [^ ]*$/) {
        add($0)
    }
    next
}

# A test binary that died, or ended by itself, names no test; where tests failed it ends with 101.
/^  process didn't exit successfully: / && !/\(exit status: 101\)$/ {
    begin("a test binary died (" binary ")")
    add($0)
    finish()
    next
}

/^test .* \.\.\. FAILED$/ {
    sub(/^test /, "")
    sub(/ \.\.\. FAILED$/, "")
    begin($0)
    is_below = 1
    next
}

is_below && /^     / {
    add($0)
    next
}

is_below {
    finish()
    is_below = 0
}

END {
    finish()
}
