# A rule names a program by its path: those that run it before and after the service starts are tracked, and none that only has its name.
# needs: onbeat dbus-daemon periodic.c taskset
# cpus: 1
mkdir -p /tmp/other && cp /usr/bin/periodic /tmp/other/periodic
periodic 40000 1000 600 /dev/null &
before=$!
printf 'scan = "200ms"\n[[rule]]\nname = "it"\nprogram = "/usr/bin/periodic"\n' >/tmp/onbeat.toml
start_service /tmp/onbeat.toml
/tmp/other/periodic 40000 1000 600 /dev/null &
other=$!
periodic 40000 1000 600 /dev/null &
after=$!
is_tracked() { grep -q "($1): tracked by rule" /tmp/service; }
wait_until "the one before is tracked" 20 is_tracked "$before"
wait_until "the one after is tracked" 20 is_tracked "$after"
check "the other one is not" "$(grep -c "($other): tracked by rule" /tmp/service)" = 0
kill "$before" "$after" "$other"
end_service
