# Periodic programs and a film beside CPU hogs, on a kernel in virtual time, by each means, also under schedulers of others.
# needs: onbeat periodic.c mplayer shown.c slice.c chrt nice
# seconds: 14400
#
# WAYS: words SCHEDULER/MEANS. SCHEDULER: a program that loads one, or eevdf, the kernel's own; MEANS: nothing, nice, slice
# (of 0.1 ms), short (slice and nice), chrt or onbeat. HOGS: how many. Left in /results/ways.csv: a line for each way; of the three periodic programs (their periods are
# in its head) how many jobs of a thousand were in time, of the film how many frames of FRAMES were shown and the longest time
# between two, and for how long the hogs ran, in ms.
FRAMES=150
LENGTH_S=6

by() {
    means=$1
    shift
    case "$means" in
    nothing) "$@" ;;
    nice) nice -n -20 "$@" ;;
    slice) slice 100000 "$@" ;;
    short) slice 100000 nice -n -20 "$@" ;;
    chrt) chrt -r 1 "$@" ;;
    onbeat) onbeat run --quiet --children -- "$@" ;;
    esac
}

# What the schedulers ask of the kernel's configuration; the kernel here comes without the file.
mkdir -p /boot
echo CONFIG_PREEMPT_RCU=y >"/boot/config-$(uname -r)"

# How many rounds of periodic.c's take a millisecond.
periodic 100000 1000 1 /tmp/calibration
rounds=$(awk '$3 > 0 { print int(1000000 / $4); exit }' /tmp/calibration)
check "a round takes time" "$rounds" -gt 0

cat >/tmp/three.sh <<THREE
periodic 3505 $((rounds * 700 / 1000)) $LENGTH_S \$1/a &
periodic 8220 $((rounds * 1560 / 1000)) $LENGTH_S \$1/b &
periodic 100000 $((rounds * 14)) $LENGTH_S \$1/c &
wait
THREE
cat >/tmp/film.sh <<'FILM'
exec timeout 12 mplayer -nosound -vo null -vf scale=1600:1200 -nolirc -noautosub -noconsolecontrols -nojoystick /tmp/film.y4m 2>/dev/null </dev/null
FILM
make_film /tmp/film.y4m "$FRAMES"

in_time() { # LOG PERIOD_US
    awk -v period="$2" '{ jobs++ } $3 >= 0 && $3 - $1 <= period { good++ } END { print int(1000 * good / jobs + 0.5) }' "$1"
}

hogs_ran() {
    for hog in $hogs; do
        has_run "$hog"
    done | awk '{ sum += $1 } END { print int(sum / 1000000) }'
}

uname -r >/results/kernel
echo "way,3.505 ms,8.220 ms,100 ms,hogs beside these,frames,longest,hogs beside the film" >/results/ways.csv
for way in $WAYS; do
    scheduler=${way%/*} means=${way#*/}
    folder=/results/$scheduler-$means
    mkdir "$folder"
    if [ "$scheduler" != eevdf ]; then
        "$scheduler" >"$folder/scheduler" 2>&1 &
        loaded=$!
        for _ in $(seq 150); do
            ! grep -q enabled /sys/kernel/sched_ext/state || break
            sleep 1
        done
        if ! grep -q enabled /sys/kernel/sched_ext/state; then
            echo "$scheduler is not in force after 150 s: $(tail -n 1 "$folder/scheduler")"
            kill -INT "$loaded" 2>/dev/null || true
            wait "$loaded" || true
            continue
        fi
        sleep 1
    fi

    start_hogs "$HOGS"
    by "$means" sh /tmp/three.sh "$folder"
    beside_three=$(hogs_ran)
    end_hogs 2>/dev/null

    start_hogs "$HOGS"
    by "$means" sh /tmp/film.sh | shown "$folder/frames"
    beside_film=$(hogs_ran)
    end_hogs 2>/dev/null
    # As many as a film of its length can have shown, if it is late.
    shown=$(awk -v end=$((LENGTH_S * 1000000)) '$1 <= end { shown++ } END { print shown + 0 }' "$folder/frames")
    longest=$(awk 'NR > 1 && $1 - last > longest { longest = $1 - last } { last = $1 } END { print int(longest / 1000) }' "$folder/frames")

    if [ "$scheduler" != eevdf ]; then
        check "$scheduler is in force to the end" "$(cat /sys/kernel/sched_ext/state)" = enabled
        kill -INT "$loaded"
        wait "$loaded" || true
    fi
    echo "$scheduler/$means,$(in_time "$folder/a" 3505),$(in_time "$folder/b" 8220),$(in_time "$folder/c" 100000),$beside_three,$shown,$longest,$beside_film" |
        tee -a /results/ways.csv
done
