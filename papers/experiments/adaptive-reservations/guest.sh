# What the encoder's frames took, as jobs on one CPU beside hogs: by default, under LFS++ as written, under onbeat, and marked.
# needs: onbeat srtgen.c
# seconds: 7200
#
# RUN_SECONDS: for how long each way; HOGS: CPU hogs beside all of them.
rounds=$(srtgen measure=1)

# way NAME KEYS COMMAND...: runs the jobs by the command; every second frame is an I frame.
way() {
    folder=/results/$1 keys=$2
    shift 2
    mkdir -p "$folder"
    echo "$folder ..."
    "$@" srtgen period_us=40000 demands=/demands.csv backlog=1 rounds_per_ms="$rounds" seconds="$RUN_SECONDS" \
        log="$folder/log.csv" $keys
}

start_hogs "$HOGS"
way default "" env
way lfspp "" onbeat-experiments lfspp --report /results/lfspp.json --
way onbeat "" onbeat run --always --quiet --report /results/onbeat.json --
way marked marks=1 onbeat run --always --quiet --report /results/marked.json --
end_hogs
