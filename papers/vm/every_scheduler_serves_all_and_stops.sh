# Under each scheduler periodic programs, a player and hogs all go on, nothing stalls, and it stops as it is told.
# needs: onbeat-lab rt-app ffmpeg srtgen.c
# long: yes
calibrate_rt_app
ffmpeg -v error -f lavfi -i testsrc=duration=3:size=160x120:rate=25 -c:v mpeg4 /tmp/film.avi

for name in $(onbeat-lab scheduler list --json | sed 's/{"name":"\([^"]*\)".*/\1/'); do
    folder=/results/$name
    rt_app_plan "$folder" 4 "$(rt_app_task periodic 40000 8000)"
    onbeat-lab scheduler start "$name" --json >"$folder/turns" 2>"$folder/messages" &
    scheduler=$!
    wait_until "$name is in force" 30 in_force "$name"
    start_hogs 2
    rt-app "$folder/plan.json" >/dev/null 2>&1 &
    periodic=$!
    srtgen period_us=40000 share=200 seconds=4 mdn=1 log="$folder/srt" &
    srt=$!
    ffmpeg -v error -re -i /tmp/film.avi -f null - 2>"$folder/player"
    check "$name: the player has played it all and complained of nothing" ! -s "$folder/player"
    for hog in $hogs; do
        check "$name: a hog had a quarter of its share" "$(has_run "$hog")" -ge 450000000
    done
    wait "$periodic" "$srt"
    end_hogs
    check "$name: the periodic program did four of five jobs" "$(grep -vc '^#' "$folder"/log-periodic-*.log)" -ge 80
    check "$name: so did the other" "$(wc -l <"$folder/srt")" -ge 80
    stops "$name" "$scheduler" "$folder/messages"
done
check "no scheduler was put out" "$(dmesg | grep -c 'sched_ext.*\(runtime error\|stall\|errored\)')" = 0
