# What a hog with a reservation gets that may reclaim (GRUB), alone, and beside a reservation that is used or mostly idle:
# by the kernel and by `onbeat-lab sim`.
# needs: onbeat onbeat-lab rt-app
# long: yes
#
# Tolerance: its CPU time is within 5% of the CPU. The kernel counts what was executed since its last look with the
# share in use at the end of it, the simulation with that of each moment.
calibrate_rt_app
seconds=4

# by_the_kernel RUN_US: the CPU time of the hog in per mille, beside a reservation of 8 of 40 ms of which each job uses
# so much; beside none if that is 0.
by_the_kernel() {
    other=
    if [ "$1" -gt 0 ]; then
        rt_app_plan "/results/other$1" "$((seconds + 2))" "$(rt_app_task other 40000 "$1" "$(rt_app_deadline 8000 40000)")"
        rt-app "/results/other$1/plan.json" >/dev/null 2>&1 &
        other=$!
        sleep 1
    fi
    onbeat reserve --runtime 80ms --period 400ms -- sh -c 'echo $$ >/tmp/hog; while :; do :; done' &
    reserve=$!
    wait_until "the hog runs" 10 test -s /tmp/hog >&2
    task=$(cat /tmp/hog)
    sleep 0.2
    from=$(awk '{ print int($1 * 100) }' /proc/uptime)
    before=$(has_run "$task")
    sleep "$seconds"
    after=$(has_run "$task")
    to=$(awk '{ print int($1 * 100) }' /proc/uptime)
    kill "$reserve"
    wait "$reserve" || true
    rm /tmp/hog
    [ -z "$other" ] || wait "$other"
    # Nanoseconds by hundredths of a second.
    echo $(((after - before) / (to - from) / 10000))
}

# by_the_simulator RUN_US: the same.
by_the_simulator() {
    file=/results/tasks$1.toml
    cat >"$file" <<TOML
duration = "20s"
[machine]
tick = "4ms"
fair_server = 0.05
[[task]]
name = "hog"
arrival = "always"
demand = "endless"
scheduling = { deadline = { runtime = "80ms", period = "400ms", reclaim = true } }
TOML
    [ "$1" = 0 ] || cat >>"$file" <<TOML
[[task]]
name = "other"
arrival = { periodic = "40ms" }
demand = { constant = "${1}us" }
scheduling = { deadline = { runtime = "8ms", period = "40ms" } }
TOML
    # The hog is the first task.
    onbeat-lab sim -q --json "$file" | sed 's/.*"name":"hog"[^}]*"executed_ns":\([0-9]*\).*/\1/' | awk '{ print int($1 / 2e7) }'
}

for run in 0 7000 1000; do
    k=$(by_the_kernel "$run")
    s=$(by_the_simulator "$run")
    check "beside jobs of $run us: $k per mille by the kernel and $s here are 50 apart at most" \
        "$((k > s ? k - s : s - k))" -le 50
    eval "share$run=$k"
done
check "it reclaims more where nobody else reserves" "$share0" -gt "$share1000"
check "it reclaims what the other leaves" "$share1000" -gt "$((share7000 + 100))"
