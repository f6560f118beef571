# An ordinary program that computes takes a CPU for good: the chosen one that ran there goes on on the other.
# needs: onbeat onbeat-lab periodic.c taskset
# long: yes
# cpus: 2
# time: virtual
cat >/tmp/chosen <<'CHOSEN'
. /lib.sh

cpu_of() {
    sed 's/.*) //' "/proc/$hog/stat" | cut -d ' ' -f 37
}

periodic 10000 1000000000 1 /dev/null &
hog=$!
sleep 0.2
cpu_of >/tmp/cpu
before=$(has_run "$hog")
sleep 1.2
echo $(($(has_run "$hog") - before)) >/tmp/used
kill -9 "$hog"
CHOSEN

for name in $(onbeat-lab scheduler list --json | sed 's/{"name":"\([^"]*\)".*/\1/'); do
    rm -f /tmp/cpu
    onbeat-lab scheduler start "$name" --quiet -- sh -u /tmp/chosen 2>/tmp/messages &
    scheduler=$!
    wait_until "$name: the chosen hog runs" 30 test -s /tmp/cpu
    taskset -c "$(cat /tmp/cpu)" periodic 10000 1000000000 1 /dev/null &
    ordinary=$!
    wait "$scheduler"
    kill -9 "$ordinary"
    check "$name had nothing to say" ! -s /tmp/messages
    # Not where it is in the end: who looks, a chosen one, too, takes its CPU for that moment.
    check "$name: it went on on the other CPU, for three quarters of the time" "$(cat /tmp/used)" -gt 900000000
done
