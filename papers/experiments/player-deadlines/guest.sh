# The player of libonbeat's examples beside the paper's two rt-apps, by both rules under each policy.
# needs: rt-app chrt
# seconds: 3600
#
# RUNS: how often each; SECONDS_OF_FILM: how long /film.mkv is. The player and the film are given with --need.
calibrate_rt_app

# The same parameters for all three, as the paper's Table 2. A budget of its own for each of them under cbs.
rt_apps_under() { # POLICY
    case "$1" in
    other) first= second= ;;
    fifo) first='"policy": "SCHED_FIFO", "priority": 5' second=$first ;;
    rr) first='"policy": "SCHED_RR", "priority": 5' second=$first ;;
    cbs) first=$(rt_app_deadline 3150 8000) second=$(rt_app_deadline 21000 200000) ;;
    esac
    echo "$(rt_app_task first 8000 3000 "$first"), $(rt_app_task second 200000 20000 "$second")"
}

play_under() { # POLICY WORDS...
    policy=$1
    shift
    case "$policy" in
    other) player "$@" ;;
    fifo) chrt -f 5 player "$@" ;;
    rr) chrt -r 5 player "$@" ;;
    cbs) chrt -d -T 15000000 -D 40000000 -P 40000000 0 player "$@" ;;
    esac
}

# The libraries are loaded and the film is seen once before anything is measured.
player --output none --drop none --statistics /results/alone.json /film.mkv

for run in $(seq "$RUNS"); do
    for policy in other fifo rr cbs; do
        for rule in heuristic deadline; do
            folder=/results/$run-$policy-$rule
            rt_app_plan "$folder" $((SECONDS_OF_FILM + 30)) "$(rt_apps_under "$policy")"
            rt-app "$folder/plan.json" >/dev/null 2>&1 &
            rt_app=$!
            # Each run finds the rt-apps at another point of their periods.
            usleep $((500000 + run * 13700))
            play_under "$policy" --output none --drop "$rule" --statistics "$folder/player.json" /film.mkv
            kill -INT "$rt_app"
            wait "$rt_app" || true
            echo "$run $policy $rule: $(sed -n 's/^{"rule":"[a-z]*",\(.*\),"frame":\[$/\1/p' "$folder/player.json")"
        done
    done
done
