# Each scheduler, for chosen programs only and on two CPUs: two players show every frame beside hogs, and the hogs go on, too.
# needs: onbeat onbeat-lab mplayer shown.c
# cpus: 2
# time: virtual
# long: yes
make_film /tmp/film.y4m 50
cat >/tmp/chosen <<'CHOSEN'
. /lib.sh
start_hogs 3
play /tmp/film.y4m | shown "$1/other" &
other=$!
play /tmp/film.y4m | shown "$1/frames"
wait "$other"
for hog in $hogs; do
    has_run "$hog"
done >"$1/hogs"
policy_of "${hogs##* }" >"$1/policy"
# The shell would tell of each.
end_hogs 2>/dev/null
CHOSEN

for name in $(onbeat-lab scheduler list --json | sed 's/{"name":"\([^"]*\)".*/\1/'); do
    folder=/results/$name
    mkdir "$folder"
    onbeat-lab scheduler start "$name" --quiet -- sh -eu /tmp/chosen "$folder" 2>"$folder/messages"
    check "$name: the programs were chosen" "$(cat "$folder/policy")" = 7
    check_film "$name" "$folder/frames" 50
    check_film "$name" "$folder/other" 50
    check "$name: each hog had a quarter of its share" "$(sort -n "$folder/hogs" | head -n 1)" -ge 700000000
    check "$name had nothing to say" ! -s "$folder/messages"
    check "the kernel is back at its own" "$(cat /sys/kernel/sched_ext/state)" = disabled
    check "nothing is left under SCHED_EXT" "$(onbeat-lab scheduler status --json | sed 's/.*"chosen":\([0-9]*\).*/\1/')" = 0
done
check "no scheduler was put out" "$(dmesg | grep -c 'sched_ext.*\(runtime error\|stall\|errored\)')" = 0
