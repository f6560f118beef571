# Of the output of `cargo test`: a line for each test binary that began its tests and never told a result. One whose test calls exit(0)
# in the midst of the others has succeeded, for cargo.

function finish() {
    if (is_running) {
        print "test a test binary ended before its tests (" binary ") ... FAILED"
    }
    is_running = 0
}

/^ *(Running|Doc-tests) / {
    finish()
    binary = $0
    sub(/^ *(Running )?/, "", binary)
    sub(/ \(.*/, "", binary)
}

/^running [0-9]+ tests?$/ {
    is_running = 1
}

/^test result: / {
    is_running = 0
}

END {
    finish()
}
