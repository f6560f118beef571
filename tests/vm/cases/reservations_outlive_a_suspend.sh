# The machine is suspended to memory, where its clocks stop and the second CPU goes, and its alarm wakes it; then the time of day jumps. The service
# and `onbeat run` go on, and what they keep has its reservations.
# needs: onbeat dbus-daemon periodic.c
# cpus: 2
# long: yes
#
# In plain emulation, because virtual time stands still while the machine sleeps.
check "this kernel can suspend to memory" "$(grep -c deep /sys/power/mem_sleep)" = 1
echo deep >/sys/power/mem_sleep
# Some rounds: how fast the emulated CPUs are, nobody can measure then.
rounds=300
printf 'scan = "200ms"\n[[rule]]\nname = "it"\nprogram = "/usr/bin/periodic"\n' >/tmp/onbeat.toml
cp /usr/bin/periodic /tmp/other
start_service /tmp/onbeat.toml
periodic 40000 $rounds 600 /dev/null &
of_service=$!
onbeat run --quiet --log /tmp/run.jsonl -- /tmp/other 30000 $rounds 600 /dev/null &
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
for round in 1 2 3; do
    echo 0 >/sys/class/rtc/rtc0/wakealarm
    echo +4 >/sys/class/rtc/rtc0/wakealarm
    began="$(cut -d . -f 1 /proc/uptime)"
    echo mem >/sys/power/state
    echo "round $round: suspended for some $(($(cut -d . -f 1 /proc/uptime) - began)) s"
    goes_on "round $round, after a suspend"
done
check "the kernel has suspended" "$(cat /sys/power/suspend_stats/success)" = 3
for day in "2030-01-01 00:00:00" "2001-01-01 00:00:00"; do
    date -s "$day" >/dev/null
    goes_on "on $day"
done
cp /tmp/service /tmp/run.jsonl /results/
kill "$of_service" "$of_run"
wait "$of_service" || true
wait "$run" || true
end_service
