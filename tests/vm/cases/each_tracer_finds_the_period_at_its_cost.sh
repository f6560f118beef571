# LFS++'s Table II in virtual time: what each tracer and strace cost a program, and what period each finds of a player.
# needs: onbeat mplayer strace stopwatch.c
# seconds: 3000
# long: yes
#
# TRACERS: those of onbeat's that are tried. FRAMES of a film are worked on as fast as it goes, by mplayer's filter in
# place of the paper's transcoder; and PLAY_SECONDS of it are played at 25 frames a second, alone and beside a hog.
# Results are in cost.txt (us, and per mille slower than untraced) and periods.txt.
#
# What a tracer does once, at the program's start, is told apart: the cost is that of the frames after the first FIRST.
cat >/tmp/player <<'SH'
#!/bin/sh
exec mplayer -really-quiet -nolirc -noautosub -noconsolecontrols -nojoystick -nosound -vo null \
    -demuxer rawvideo -rawvideo fps=25:w=176:h=144:format=i420 -vf hqdn3d=4:3:6 "$@" /dev/zero
SH
chmod +x /tmp/player

# took FRAMES [WORD...]: how long so much of the film was worked on, and its CPU time (us), started with these words.
took() {
    frames=$1
    shift
    "$@" stopwatch /tmp/cost /tmp/player -benchmark -frames "$frames" >/tmp/said 2>&1 ||
        check "the film is worked on by $*: $(tail -n 3 /tmp/said)" failed = ok >&2
    cat /tmp/cost
}

# worked_under NAME [WORD...]: a line of cost.txt. Two films are compared, so that it is not about how programs and tracers start; how much
# later the shorter one ends than untraced is that.
worked_under() {
    name=$1
    shift
    begun=$(took "$first" "$@")
    worked=$(took "$((first + ${FRAMES:-1500}))" "$@")
    [ "$name" != untraced ] || untraced_begun=${begun% *}
    echo "$begun $worked" | awk -v name="$name" -v wall="${untraced_wall:-0}" -v cpu="${untraced_cpu:-0}" -v begun="$untraced_begun" '
        function slower(now, then) { return then > 0 ? 1000 * (now / then - 1) : 0 }
        { printf "%s wall %d cpu %d slower %.2f %.2f start %d\n", name, $3 - $1, $4 - $2, slower($3 - $1, wall), slower($4 - $2, cpu), $1 - begun }' |
        tee -a /results/cost.txt
    if [ "$name" = untraced ]; then
        untraced_wall=$(awk '{ print $3 }' /results/cost.txt)
        untraced_cpu=$(awk '{ print $5 }' /results/cost.txt)
    fi
}

# slower NAME: by how many per mille the film took longer than untraced.
slower() {
    awk -v name="$1" '$1 == name { print int($7 + 0.5) }' /results/cost.txt
}

# seconds_of RECORDING: of its last PLAY_SECONDS seconds, in how many the player had the right period, in how many none, and by how much
# the others were off in the mean.
seconds_of() {
    onbeat analyze --json --window 1s "$1" | grep '"comm":"mplayer"' | grep '"complete":true' | tail -n "$play_seconds" |
        sed 's/.*"period_ns":\([^,}]*\).*/\1/' | awk '
            { seconds++ }
            $1 == "null" { none++; next }
            { off = $1 / 40e6 - 1; if (off < 0) off = -off; if (off <= 0.01) right++; sum += off }
            END { printf "seconds %d right %d none %d mean_error %.4f%%", seconds, right, none,
                         (seconds > none) ? 100 * sum / (seconds - none) : 0 }'
}

# played_under TRACER HOGS: a line of periods.txt: what the tracer has heard, and what BPF has around both in the same run; the latter
# alone for "none".
played_under() {
    start_hogs "$2"
    name=$1 beside=$2
    shift 2
    [ "$name" = none ] || set -- onbeat record --quiet --tracer "$name" -o /tmp/inside --
    onbeat record --quiet --tracer bpf --children -o /tmp/around -- "$@" \
        /tmp/player -frames "$((25 * (play_seconds + 1)))" >/tmp/said 2>&1 ||
        check "a player is heard by $name: $(tail -n 3 /tmp/said)" failed = ok
    end_hogs
    heard="seconds 0 right 0 none 0 mean_error -"
    [ "$name" = none ] || heard=$(seconds_of /tmp/inside)
    echo "$name hogs $beside $heard around $(seconds_of /tmp/around)" | tee -a /results/periods.txt
}

# right TRACER HOGS: in how many of a hundred seconds that were played; a second that was not heard is not right.
right() {
    awk -v name="$1" -v hogs="$2" -v played="$play_seconds" '$1 == name && $3 == hogs { print int(100 * $7 / played) }' /results/periods.txt
}

play_seconds=${PLAY_SECONDS:-8}
first=${FIRST:-400}
tracers=${TRACERS:-bpf bpf-syscalls tracefs perf ptrace preload}
worked_under untraced
worked_under untraced-again
for tracer in $tracers; do
    worked_under "$tracer" onbeat record --quiet --children --tracer "$tracer" -o /tmp/recording --
done
worked_under strace-c strace -f -c -o /tmp/strace
worked_under strace strace -f -o /tmp/strace
for tracer in none $tracers; do
    for hogs in 0 1; do
        played_under "$tracer" "$hogs"
    done
done

for tracer in $tracers; do
    case $tracer in
    # They have work at each call, as strace has.
    bpf-syscalls | ptrace) ;;
    *) check "$tracer costs less than strace" "$(slower "$tracer")" -lt "$(slower strace)" ;;
    esac
    check "$tracer finds the period of a player that is alone" "$(right "$tracer" 0)" -ge 75
done
