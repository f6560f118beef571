# Reservations of groups, by the kernel under the scheduler `reserve` and by `onbeat-lab sim`: the same figures, also where a program
# needs more than it reserved, and where two greedy programs share a budget.
# needs: onbeat-lab srtgen.c
# long: yes
#
# Both run the rules of schedulers/reserve/policy.h. Tolerance: shares of the CPU within 2 percent of it; the median response
# times within 2 ms, the missed deadlines within 5 percent of the jobs: a budget is used up by all that the process does, its
# start and its clock's calls too, and onbeat and the shell take some time from who has no reservation.
seconds=10

rounds=$(srtgen measure=1)
# The decoder needs SHARE permille of the CPU, has half of it, and a fifth is for two hogs together; two more have the rest.
for share in 400 600; do
    folder=/results/$share
    mkdir "$folder"
    cat >"$folder/srt.sh" <<SRT
until [ -e $folder/begin ]; do usleep 10000; done
exec srtgen rounds_per_ms=$rounds period_us=40000 share=$share seed=16 seconds=$seconds log=$folder/srt.csv
SRT
    hog="srtgen rounds_per_ms=$rounds share=1000 period_us=10000 seconds=$seconds"
    cat >"$folder/greedy.sh" <<GREEDY
until [ -e $folder/begin ]; do usleep 10000; done
$hog log=$folder/greedy0.csv & $hog log=$folder/greedy1.csv &
wait
GREEDY
    sh "$folder/srt.sh" &
    srt=$!
    sh "$folder/greedy.sh" &
    greedy=$!
    onbeat-lab scheduler start reserve --quiet --group "$srt=20ms/40ms" --group "$greedy=4ms/20ms" &
    scheduler=$!
    wait_until "the scheduler is in force" 60 in_force reserve
    sleep 0.5
    : >"$folder/begin"
    $hog "log=$folder/rest0.csv" &
    first=$!
    $hog "log=$folder/rest1.csv" &
    wait "$srt" "$greedy" "$first" "$!"
    kill -INT "$scheduler"
    wait "$scheduler"
    cat >"$folder/tasks.toml" <<TOML
duration = "${seconds}s"
policy = "reserve"
machine = { tick = "4ms" }
[[task]]
name = "srt"
arrival = { paced = "40ms" }
phase = "13ms"
demand = { decoder = { mean = "$((share * 40 / 1000))ms", seed = 16 } }
scheduling = { deadline = { runtime = "20ms", period = "40ms" } }
[[task]]
name = "greedy"
count = 2
arrival = "always"
demand = "endless"
scheduling = { deadline = { runtime = "4ms", period = "20ms" } }
[[task]]
name = "rest"
count = 2
arrival = "always"
demand = "endless"
TOML
    onbeat-lab sim -q --jobs "$folder/jobs.csv" "$folder/tasks.toml" >"$folder/table"
    cat "$folder/table"
    way="a decoder of $share per mille"
    decoder_agrees "$way" "$folder" 5 2000
    for task in srt greedy rest; do
        share_agrees "$way" "$folder" "$task" 2
    done
done
check "the overload was one" "$(awk -F , 'FNR > 1 { late += $7 } END { print late }' /results/600/srt.csv)" -gt 50
