# The time of day jumps by years, on and back: the service and `onbeat run` go on, and what they keep has its reservations.
# needs: onbeat dbus-daemon periodic.c
# cpus: 2
# time: virtual
# long: yes
#
# A suspend cannot be had here: this kernel has no test of it, virtual time stands still in it, and in host time a busy host stops the clocks.
periodic 40000 1000 1 /tmp/speed
rounds=$((2 * 1000000 / $(cut -d ' ' -f 4 /tmp/speed | middle)))
printf 'always = true\nscan = "200ms"\n[[rule]]\nname = "it"\nprogram = "/usr/bin/periodic"\n' >/tmp/onbeat.toml
cp /usr/bin/periodic /tmp/other
start_service /tmp/onbeat.toml
periodic 40000 $rounds 600 /dev/null &
of_service=$!
onbeat run --always --quiet --log /tmp/run.jsonl -- /tmp/other 30000 $rounds 600 /dev/null &
run=$!
wait_until "the other runs" 60 pidof other
of_run=$(pidof other)

both_are_reserved() {
    test "$(policy_of "$of_service")" = 6 && test "$(policy_of "$of_run")" = 6
}
goes_on() {
    wait_until "$1: both have reservations" 60 both_are_reserved
    before="$(has_run "$of_service") $(has_run "$of_run")"
    sleep 2
    check "$1: the service's runs" "$(has_run "$of_service")" -gt "${before% *}"
    check "$1: that of run runs" "$(has_run "$of_run")" -gt "${before#* }"
    check "$1: the service is there" -d "/proc/$service"
    check "$1: run is there" -d "/proc/$run"
    check "$1: nothing fell over" "$(grep -c 'panicked\|ERROR' /tmp/service)" = 0
}

goes_on "at first"
for day in "2030-01-01 00:00:00" "2001-01-01 00:00:00"; do
    date -s "$day" >/dev/null
    goes_on "on $day"
done
cp /tmp/service /tmp/run.jsonl /results/
kill "$of_service" "$of_run"
wait "$of_service" || true
wait "$run" || true
end_service
