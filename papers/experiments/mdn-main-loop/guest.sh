# Programs that say they missed deadlines, under onbeat's main loop and the kernel's own scheduler: silent, then crying.
# needs: onbeat srtgen.c
# seconds: 7200
#
# RUN_SECONDS: for how long each; the cheaters of Fig. 7 begin to cheat after half of that.
rounds=$(srtgen measure=1)
half=$((RUN_SECONDS / 2))

# way NAME HOGS CRIERS KEY=VALUE...: so many programs with these keys beside so many that compute.
way() {
    folder=/results/$1 hogs=$2 criers=$3
    shift 3
    mkdir -p "$folder"
    echo "$folder ..."
    same="seconds=$RUN_SECONDS rounds_per_ms=$rounds"
    # onbeat takes a while to start: all begin when it has.
    rm -f /run/begun
    (
        until [ -e /run/begun ]; do usleep 10000; done
        for n in $(seq "$hogs"); do
            srtgen $same share=1000 period_us=10000 "log=$folder/hog$n.csv" &
        done
        wait
    ) &
    all=
    for n in $(seq "$criers"); do
        all="$all srtgen $same $* seed=$n log=$folder/crier$n.csv &"
    done
    onbeat run --always --quiet --children --report "$folder/report.json" --log "$folder/log.jsonl" -- sh -c ": >/run/begun; $all wait"
    wait
}

for cries in 0 1; do
    word=$([ "$cries" = 1 ] && echo crying || echo silent)
    often=$((cries * 1000))
    way "honest.$word" 2 1 share=250 jitter=500 "mdn=$cries"
    way "no-period.$word" 2 1 share=250 jitter=900 "cry=$often"
    way "flood.$word" 1 1 share=1000 period_us=10000 "cry=$((cries * 1000000))"
    way "fig7a.$word" 1 1 share=500 "mdn=$cries" "change_s=$half" share_then=800 "cry_then=$often"
    way "fig7b.$word" 2 1 share=400 "mdn=$cries" "change_s=$half" share_then=1000 "cry_then=$often"
    way "many.$word" 1 8 share=100 jitter=900 "cry=$often"
done
