# LFS++'s Table I: three tasks by default, reserved by hand, under LFS++ as written, and under onbeat; also without the fair server.
# needs: onbeat rt-app
# seconds: 36000
#
# TASKS: words NAME:PERIOD_US:RUN_US:RESERVED_US; RUN_SECONDS: for how long each way; HOGS: CPU hogs beside all of
# them; ONBEAT: its options.
tasks() { # yes: each reserves for itself
    separator=
    for task in $TASKS; do
        (
            IFS=:
            set -- $task "$1"
            echo "$separator$(rt_app_task "$1" "$2" "$3" "${5:+$(rt_app_deadline "$4" "$2")}")"
        )
        separator=,
    done
}

# way NAME TASKS COMMAND...: runs them with the command, which is given rt-app and its plan.
way() {
    folder=/results/$1
    rt_app_plan "$folder" "$RUN_SECONDS" "$2"
    shift 2
    echo "$folder ..."
    "$@" rt-app "$folder/plan.json" >/dev/null 2>"$folder/stderr"
}
lfspp() { # NAME
    way "$1" "$(tasks '')" onbeat-experiments lfspp --report "/results/$1/report.json" --
}
by_onbeat() { # NAME
    way "$1" "$(tasks '')" onbeat run --always $ONBEAT --report "/results/$1/report.json" --log "/results/$1/log.jsonl" --
}

calibrate_rt_app
start_hogs "$HOGS"
# First, because the kernel refuses this (EBUSY) once reservations have come and gone.
for server in /sys/kernel/debug/sched/fair_server/cpu*; do
    cat "$server/runtime" >"/run/${server##*/}"
    echo 0 >"$server/runtime"
done
lfspp lfspp-alone
by_onbeat onbeat-alone
for server in /sys/kernel/debug/sched/fair_server/cpu*; do
    cat "/run/${server##*/}" >"$server/runtime"
done
way default "$(tasks '')" env
way by-hand "$(tasks yes)" env
lfspp lfspp
by_onbeat onbeat
end_hogs
