# onbeat lowers the frequency and is killed; restore puts back what the governor was told before.
# needs: onbeat
# cpufreq: 1000 800 700 600 500 300
load_cpufreq
policy=/sys/devices/system/cpu/cpufreq/policy0

settings() {
    (cd "$policy" && cat scaling_governor scaling_min_freq scaling_max_freq scaling_setspeed) | tr '\n' ' '
}

# The kernel puts limits in force a moment after they are written.
wait_for() { # SETTINGS
    for _ in $(seq 100); do
        [ "$(settings)" != "$1" ] || break
        usleep 100000
    done
}

# Starts an onbeat, and kills it when it has lowered the frequency to 800 MHz.
kill_one() { # NAME
    rm -f "/results/$1.jsonl"
    sleep 1000 &
    onbeat attach --always --quiet --config 'power.rule="band"' --log "/results/$1.jsonl" $! &
    killed=$!
    until grep -q 'speed-set.*"new_khz":800000' "/results/$1.jsonl" 2>/dev/null; do
        kill -0 "$killed"
        usleep 100000
    done
    kill_with_guard "$killed"
}

onbeat doctor >/results/doctor || true
check "the doctor sees the frequencies" "$(grep -c '6 speeds from 300 MHz to 1000 MHz; governor schedutil' /results/doctor)" = 1

before="schedutil 500000 1000000 <unsupported> "
echo 500000 >"$policy/scaling_min_freq"
wait_for "$before"
check "the administrator's limit is in force" "$(settings)" = "$before"
kill_one limits
check "under schedutil the limits are onbeat's" "$(settings)" != "$before"
onbeat restore
wait_for "$before"
check "they are as before" "$(settings)" = "$before"

echo userspace >"$policy/scaling_governor"
echo 700000 >"$policy/scaling_setspeed"
before=$(settings)
kill_one userspace
check "under userspace the speed is onbeat's" "$(cat "$policy/scaling_setspeed")" != 700000
onbeat restore
check "it is as before" "$(settings)" = "$before"
check "and in force" "$(cat "$policy/scaling_cur_freq")" = 700000
check "nothing is left to put back" "$(onbeat restore)" = "nothing to put back"
