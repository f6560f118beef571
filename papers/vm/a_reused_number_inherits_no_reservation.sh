# The reservation of a process is its own as long as it has a thread: another process that gets its number later has none. It is not
# another thread's, whose number is refused.
# needs: onbeat-lab crew.c

# used PROCESS: the CPU time of all its threads (ms).
used() {
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print 10 * ($12 + $13) }'
}

# used_in_2s PROCESS
used_in_2s() {
    before=$(used "$1")
    sleep 2
    echo $(($(used "$1") - before))
}

crew 2 headless &
program=$!
wait_until "the first thread has ended" 10 grep -q 'State:.*Z' "/proc/$program/status"
for thread in "/proc/$program/task/"*; do
    thread=${thread##*/}
done
status=0
timeout 30 onbeat-lab scheduler start reserve --quiet --group "$thread=5ms/100ms" 2>/tmp/refused || status=$?
cat /tmp/refused
check "the number of another thread is refused" "$status" = 1
check "and is said to be no process" "$(grep -c "there is no process $thread" /tmp/refused)" = 1
onbeat-lab scheduler start reserve --quiet --group "$program=5ms/100ms" 2>/tmp/messages &
onbeat=$!
wait_until "the scheduler is in force" 60 in_force reserve
before=$(used_in_2s "$program")
echo "in 2 s the process without its first thread had $before ms"
check "it lives on its budget" "$before" -le 140

kill "$program"
wait "$program" || true
echo $((program - 1)) >/proc/sys/kernel/ns_last_pid
crew 2 headless &
other=$!
check "the number is another process's" "$other" = "$program"
after=$(used_in_2s "$other")
echo "in 2 s the other one had $after ms"
check "that one has no budget to keep to" "$after" -ge 1500
kill "$other"
stops reserve $onbeat /tmp/messages
