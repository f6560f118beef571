# Under GRACE-OS a program says without end how soft its real time is, or that it is soft real-time no longer, and computes on: another
# one's jobs are heard all the same, and they alone make its plan.
# needs: onbeat onbeat-lab cycles.c talker.c
# long: yes
# cpufreq: 1000 500
load_cpufreq
for says in floods "leaves 400"; do
    folder=/results/${says%% *}
    mkdir "$folder"
    cat >/tmp/both.sh <<BOTH
talker $says &
talker=\$!
sleep 4
cycles 16 3000 260 $folder/jobs 0 says
kill \$talker
BOTH
    onbeat-lab scheduler start grace --json -- sh -eu /tmp/both.sh >"$folder/told.jsonl" 2>"$folder/messages"
    grep 'every 16 ms' "$folder/messages" || true
    echo "$says: $(wc -l <"$folder/messages") lines were said in $(wc -l <"$folder/told.jsonl") s"
    check "$says: each hundred of the 260 jobs made a plan" "$(grep -c 'of work every 16 ms' "$folder/messages")" -ge 2
    budget=$(sed -n 's/.*: \([0-9.]*\) ms of work every 16 ms.*/\1/p' "$folder/messages" | awk '{ print int($1 * 1000) }' | greatest)
    check "$says: they are of its work" "$budget" -gt 2900
    check "$says: and no more" "$budget" -lt 4000
done
