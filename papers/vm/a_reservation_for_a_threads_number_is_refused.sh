# Under reserve: a group is named by a process, and the number of another of its threads is refused. It would match nobody.
# needs: onbeat-lab crew.c
# long: yes
crew 2 headless &
crew=$!
usleep 200000
for thread in "/proc/$crew/task/"*; do
    thread=${thread##*/}
done
check "the process has another thread than its first" "$thread" != "$crew"
kill -STOP "$crew"
status=0
timeout 30 onbeat-lab scheduler start reserve --quiet --group "$thread=6ms/20ms" 2>/tmp/refused || status=$?
cat /tmp/refused
kill -KILL "$crew"
check "the number of a thread is refused" "$status" = 1
check "and is said to be no process" "$(grep -c "there is no process $thread" /tmp/refused)" = 1
