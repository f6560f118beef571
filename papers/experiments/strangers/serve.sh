#!/usr/bin/env bash
# Runs a command beside the service, with the rules that are shipped, which hold for users' own programs.
#
# usage: serve.sh ONBEAT COMMAND...
onbeat=$1
shift
rules=$(dirname "$0")/../../../packaging/rules.d
"$onbeat" daemon --no-bus --config /dev/null --rules "$rules" --state-dir "$WORK/state" 2>"$WORK/service" &
service=$!
for ((i = 0; i < 50; i++)); do
    grep -q "serving rules" "$WORK/service" && break
    sleep 0.1
done
"$@"
kill $service
wait $service
