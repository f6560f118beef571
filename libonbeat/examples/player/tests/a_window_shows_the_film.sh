#!/bin/sh
# Plays into a window of a display that nobody looks at, and ends on a signal.
# needs PLAYER (the program) and PLAYER_CLIPS (the folder of films)
set -eu
if ! command -v Xvfb >/dev/null; then
    echo "no Xvfb here"
    [ -z "${CI-}" ] && exit 77
    exit 1
fi
folder=$(mktemp -d)
mkfifo "$folder/number"
Xvfb -displayfd 3 -screen 0 640x480x24 -nolisten tcp 3>"$folder/number" >/dev/null 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || :; rm -rf "$folder"' EXIT
read -r number <"$folder/number"

DISPLAY=:$number "$PLAYER" --statistics "$folder/told.json" "$PLAYER_CLIPS/h264.mkv"
python3 - "$folder/told.json" <<'PYTHON'
import json, sys
told = json.load(open(sys.argv[1]))
assert told["frames"] == 75 and told["shown"] > 0, told["shown"]
PYTHON

# Asked to end, it ends as it should, and tells what it played until then. It listens once the file is there.
rm "$folder/told.json"
DISPLAY=:$number "$PLAYER" --statistics "$folder/told.json" "$PLAYER_CLIPS/h264.mkv" &
playing=$!
until [ -e "$folder/told.json" ]; do sleep 0.1; done
# On a machine that stood still it may have reached the film's end meanwhile.
kill "$playing" || :
wait "$playing"
python3 -m json.tool "$folder/told.json" >/dev/null
