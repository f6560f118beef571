# shellcheck shell=sh
# For test scripts: a compiler that is not here is a failure with CI set. Otherwise the test does the
# rest, and counts as skipped.
missing=

is_missing() { # WHAT
	if [ -n "${CI:-}" ]; then
		echo "$1: scripts/setup.sh test installs what is needed"
		exit 1
	fi
	missing="${missing:+$missing; }$1"
}

is_here() { # COMPILER
	command -v "$1" >/dev/null && return 0
	is_missing "$1 is not here"
	return 1
}

# The last thing that a test does.
skip_if_missing() {
	[ -z "$missing" ] || { echo "$missing"; exit 77; }
}
