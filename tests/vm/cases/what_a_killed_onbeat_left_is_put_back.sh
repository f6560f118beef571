# onbeat finds a thread's period and reserves for it, and is killed without warning: its guard gives the thread back what it had, or restore does.
# needs: onbeat rt-app
calibrate_rt_app
rt_app_plan /tmp/plan 1000 "$(rt_app_task a 10000 2000)"
rt-app /tmp/plan/plan.json >/dev/null 2>&1 &
program=$!

is_reserved() { [ -n "$(reserved_threads "$program")" ]; }
is_back() { ! is_reserved; }
onbeat attach --always "$program" >/dev/null 2>&1 &
keeper=$!
wait_until "a reservation comes" 60 is_reserved
kill -9 "$keeper"
wait "$keeper" || true
wait_until "the guard has given it back within a second" 1 is_back

onbeat attach --always "$program" >/dev/null 2>&1 &
keeper=$!
wait_until "a reservation comes again" 60 is_reserved
thread=$(reserved_threads "$program")
kill_with_guard "$keeper"
check "what was reserved stays so when the guard is killed, too" "$(policy_of "$program/task/$thread")" = 6
onbeat restore
check "after restore the thread has its own policy again" "$(policy_of "$program/task/$thread")" = 0
check "no thread has a reservation" -z "$(reserved_threads)"
onbeat restore
check "the program has lived through all of it" -d "/proc/$program/task/$thread"
kill -9 "$program"
