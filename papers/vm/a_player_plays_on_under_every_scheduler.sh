# Under each scheduler mplayer shows every frame of a film beside hogs and rt-app, without a pause, and the hogs go on, too.
# needs: onbeat-lab rt-app mplayer shown.c
# long: yes
calibrate_rt_app
make_film /tmp/film.y4m 75

for name in $(onbeat-lab scheduler list --json | sed 's/{"name":"\([^"]*\)".*/\1/'); do
    folder=/results/$name
    rt_app_plan "$folder" 3 "$(rt_app_task periodic 30000 2000)"
    onbeat-lab scheduler start "$name" --quiet 2>"$folder/messages" &
    scheduler=$!
    wait_until "$name is in force" 60 in_force "$name"
    start_hogs 2
    rt-app "$folder/plan.json" >/dev/null 2>&1 &
    periodic=$!
    play /tmp/film.y4m | shown "$folder/frames"
    for hog in $hogs; do
        had_ms=$(($(has_run "$hog") / 1000000))
        echo "$name: a hog had $had_ms ms"
        check "$name: a hog had a quarter of its share" "$had_ms" -ge 400
    done
    wait "$periodic"
    end_hogs
    check_film "$name" "$folder/frames" 75
    check "$name: the periodic program did its jobs" "$(grep -vc '^#' "$folder"/log-periodic-*.log)" -gt 50
    stops "$name" "$scheduler" "$folder/messages"
done
check "no scheduler was put out" "$(dmesg | grep -c 'sched_ext.*\(runtime error\|stall\|errored\)')" = 0
