#!/bin/sh
# The player as a user starts it: its exit codes, its messages, and the statistics it writes.
# needs PLAYER (the program) and PLAYER_CLIPS (the folder of films)
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# status COMMAND...: what it exits with; what it says is in $folder/said.
status() {
    code=0
    "$@" >"$folder/said" 2>&1 || code=$?
    echo "$code"
}

expect() { # WHAT HAVE WANT
    [ "$2" = "$3" ] || {
        echo "$1: $2, not $3"
        cat "$folder/said"
        exit 1
    }
}

expect "--help" "$(status "$PLAYER" --help)" 0
grep -q -e '--drop RULE' "$folder/said"
expect "no film" "$(status "$PLAYER")" 2
expect "two films" "$(status "$PLAYER" a b)" 2
expect "an unknown option" "$(status "$PLAYER" --loud film)" 2
expect "an unknown rule" "$(status "$PLAYER" --drop some film)" 2
expect "an unknown output" "$(status "$PLAYER" --output paper film)" 2
expect "no such film" "$(status "$PLAYER" -o none "$folder/none.mkv")" 1
grep -q 'none.mkv' "$folder/said"
echo "this is not a film" >"$folder/text.mkv"
expect "not a film" "$(status "$PLAYER" -o none "$folder/text.mkv")" 1
expect "no display" "$(status env DISPLAY=:none "$PLAYER" "$PLAYER_CLIPS/h264.mkv")" 1
grep -q -e '--output none' "$folder/said"
expect "statistics nowhere" "$(status "$PLAYER" -o none -s "$folder/no/file" "$PLAYER_CLIPS/h264.mkv")" 1

# Each frame of the film is told of, once, whatever became of it, and the sums are right.
for film in mpeg2.mpg h264.mkv; do
    for rule in heuristic deadline; do
        expect "$rule $film" "$(status "$PLAYER" -o none -d "$rule" -s "$folder/told.json" "$PLAYER_CLIPS/$film")" 0
        python3 - "$folder/told.json" "$rule" <<'PYTHON'
import json, sys
told = json.load(open(sys.argv[1]))
frames = told["frame"]
shown = [f for f in frames if f["fate"] == "shown"]
assert told["rule"] == sys.argv[2], told["rule"]
assert told["frames"] == len(frames) == 75, len(frames)
assert told["shown"] == len(shown) and told["shown"] + told["dropped"] == 75, told["shown"]
assert all(f["reference"] is False for f in frames if f["fate"] == "interrupted")
assert all(("deadline_ms" in f) == (told["rule"] == "deadline") for f in frames)
assert sorted(set(f["position_ms"] for f in frames)) == sorted(f["position_ms"] for f in frames)
PYTHON
    done
done
