# LFS++'s Fig. 9: a player in a reservation, recorded beside more and more real-time load.
# needs: chrt mplayer rt-app
# seconds: 3600
#
# LOADS: in per cent of the CPU, three rt-app tasks with reservations of their own each; RUN_SECONDS of
# recording for each. The player is mplayer, playing pictures of zeros at 25 a second through a filter that
# costs as much as decoding; all together may take the whole CPU, so the admission test is off.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
tracing=/sys/kernel/tracing
echo 0 >$tracing/tracing_on
echo 32768 >$tracing/buffer_size_kb
echo mono >$tracing/trace_clock
for event in sched/sched_wakeup sched/sched_switch raw_syscalls/sys_enter; do
    echo 1 >$tracing/events/$event/enable
done
calibrate_rt_app

mplayer -really-quiet -nolirc -noautosub -noconsolecontrols -nojoystick -ao null -vo null \
    -demuxer rawvideo -rawvideo fps=25:w=176:h=144:format=i420 -vf hqdn3d=4:3:6 /dev/zero >/dev/null 2>&1 &
player=$!
sleep 5
chrt --reset-on-fork --deadline --sched-runtime 5000000 --sched-deadline 40000000 --sched-period 40000000 \
    --pid 0 $player
check "the player is reserved" "$(policy_of $player)" = 6
echo $player >$tracing/set_event_pid

# load NAME PERIOD_US PERCENT: a third of the load.
load() {
    run=$(($2 * $3 / 300))
    rt_app_task "$1" "$2" $run "$(rt_app_deadline $((run * 105 / 100 + 20)) "$2")"
}

for percent in ${LOADS:-0 50}; do
    if [ "$percent" -gt 0 ]; then
        rt_app_plan "/tmp/load" $((${RUN_SECONDS:-8} + 3)) \
            "$(load a 9000 "$percent"), $(load b 17000 "$percent"), $(load c 31000 "$percent")"
        rt-app /tmp/load/plan.json >/dev/null 2>&1 &
        load=$!
        sleep 2
    fi
    echo >$tracing/trace
    echo 1 >$tracing/tracing_on
    sleep "${RUN_SECONDS:-8}"
    echo 0 >$tracing/tracing_on
    cat $tracing/trace >"/results/load-$percent.txt"
    echo "load $percent%: $(grep -c sys_enter "/results/load-$percent.txt") system calls, $(grep -c sched_wakeup "/results/load-$percent.txt") wakeups"
    [ "$percent" = 0 ] || wait $load
done
check "the player still plays" -d "/proc/$player"
kill $player
