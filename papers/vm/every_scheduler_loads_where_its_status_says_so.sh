# What `scheduler status` says of sched_ext is so: every scheduler is put in force, for all and for one program, or none is and why is told.
# needs: onbeat onbeat-lab
# long: yes
onbeat-lab scheduler status >/tmp/status
cat /tmp/status
if ! grep -q misdescribes /tmp/status; then
    for name in $(onbeat-lab scheduler list --json | sed 's/{"name":"\([^"]*\)".*/\1/'); do
        onbeat-lab scheduler start "$name" --quiet 2>/tmp/messages &
        scheduler=$!
        wait_until "$name is in force" 60 in_force "$name"
        kill -INT "$scheduler"
        wait "$scheduler"
        policy=$(onbeat-lab scheduler start "$name" --quiet -- sh -c 'sed "s/.*) //" /proc/$$/stat | cut -d " " -f 39' 2>>/tmp/messages)
        check "$name schedules a program alone" "$policy" = 7
        check "$name has nothing to say" ! -s /tmp/messages
        check "the kernel is back at its own" "$(cat /sys/kernel/sched_ext/state)" = disabled
    done
    check "the kernel has nothing to say" "$(dmesg | grep -c 'sched_ext.*\(error\|stall\|deprecated\)')" = 0
else
    function=$(sed -n 's/^this build .* misdescribes \([a-z_0-9]*\): .*/\1/p' /tmp/status)
    check "it names what is wrong with this kernel" -n "$function"
    refused=0
    for name in $(onbeat-lab scheduler list --json | sed 's/{"name":"\([^"]*\)".*/\1/'); do
        if onbeat-lab scheduler start "$name" --quiet -- true 2>/tmp/messages; then
            continue
        fi
        refused=$((refused + 1))
        check "that a refusal of $name is the kernel's fault is told" \
            "$(grep -c "this build of the kernel misdescribes .*, so it refuses the scheduler $name" /tmp/messages)" = 1
        check "the kernel is at its own" "$(cat /sys/kernel/sched_ext/state)" = disabled
    done
    check "a scheduler is refused" "$refused" -gt 0
fi
