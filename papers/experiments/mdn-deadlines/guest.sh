# The programs of section 4 of the paper on missed deadline notification, on a kernel, under each scheduler.
# needs: onbeat onbeat-lab srtgen.c
# seconds: 14400
#
# RUNS: words NAME:SCHEDULER:MDN:PROGRAM,PROGRAM,... one after the other; a PROGRAM is what srtgen is told, with + between,
# and one that begins with share=1000 and does not cry is CPU-bound and honest; MDN: whether the scheduler listens;
# RUN_SECONDS: how long each run lasts. Left in a folder NAME: a log of each program, 0.csv and so on.

# write_programs FOLDER PROGRAM,PROGRAM...: scripts that start the periodic ones, the CPU-bound ones, and all.
write_programs() {
    place=0
    : >"$1/periodic.sh"
    : >"$1/bound.sh"
    for program in $(echo "$2" | tr , ' '); do
        kind=periodic
        case "$program" in *+cry=*) ;; share=1000*) kind=bound ;; esac
        echo "srtgen $(echo "$program" | tr + ' ') seconds=$RUN_SECONDS log=$1/$place.csv &" >>"$1/$kind.sh"
        place=$((place + 1))
    done
    cat "$1/periodic.sh" "$1/bound.sh" >"$1/all.sh"
    for kind in periodic bound all; do
        echo wait >>"$1/$kind.sh"
    done
}

for run in $RUNS; do
    IFS=: read -r name scheduler mdn programs <<RUN
$run
RUN
    folder=/results/$name
    mkdir "$folder"
    write_programs "$folder" "$programs"
    case "$scheduler" in
    onbeat)
        sh "$folder/bound.sh" &
        onbeat run --always --quiet --children -- sh "$folder/periodic.sh"
        wait
        ;;
    *) onbeat-lab scheduler start "$scheduler" --set "mdn=$mdn" --quiet -- sh "$folder/all.sh" ;;
    esac
    echo "$name, jobs and late ones: $(awk -F , 'FNR > 1 { jobs++; late += $7 } END { print jobs, late }' "$folder/0.csv")"
done
