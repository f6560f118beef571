# Threads come and go on two CPUs while onbeat keeps them and is killed; everything can be put back, and the kernel is content.
# needs: onbeat rt-app
# cpus: 2
# long: yes
#
# In plain emulation the guest's clock is the host's, and a busy host tears periods apart: so nothing is asked here
# about what onbeat finds.
rt_app_speed=400

# Threads that end one after another, twice, beside hogs.
start_hogs 2
for round in 1 2; do
    tasks=
    for n in 1 2 3 4 5 6; do
        tasks="$tasks${tasks:+, }$(rt_app_task "t$n" $((n * 5000)) $((n * 300)) | sed "s/\"loop\": -1/\"loop\": $((n * 6))/")"
    done
    rt_app_plan "/tmp/plan-$round" 20 "$tasks"
done
onbeat run --always --children --log /results/log.jsonl -- sh -c '
    for round in 1 2; do rt-app /tmp/plan-$round/plan.json >/dev/null 2>&1 & sleep 0.5; done; wait'
check "nothing is reserved when all have ended" -z "$(reserved_threads)"

# Reserved programs whose keepers and their guards are killed: half of them once they have reserved, half in whatever they are doing.
reserve() { # NUMBER
    onbeat reserve --runtime 5ms --period 50ms -- sh -c "echo \$\$ >/tmp/reserved-$1; while :; do sleep 0.1; done" &
    keeper=$!
}
for n in 1 2 3 4; do
    reserve "$n"
    wait_until "program $n runs" 120 [ -s "/tmp/reserved-$n" ]
    kill_with_guard "$keeper"
    check "program $n has its reservation without its keeper" "$(policy_of "$(cat "/tmp/reserved-$n")")" = 6
done
for n in 5 6 7 8; do
    reserve "$n"
    sleep "0.$n"
    kill_with_guard "$keeper"
done
end_hogs
onbeat restore
check "nothing is reserved after restore" -z "$(reserved_threads)"
