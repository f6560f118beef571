# LFS++'s Fig. 10: a periodic task when the load beside it ends and the frequency falls.
# needs: onbeat cycles.c
# cpufreq: 2400 1500
# seconds: 3600
#
# LOADED_JOBS, JOBS: after how many of its jobs the load ends, and the task. Reservations are hard: nothing else wants
# the CPU after the load, so that a soft one never runs out.
load_cpufreq
for governor in userspace schedutil; do
    for way in alone protocol; do
        folder=/results/$governor-$way
        run_while_frequency_falls "$folder" "$governor" "$way" "${LOADED_JOBS:-50}" "${JOBS:-140}" --hard
        echo "$governor, $way: $(overruns "$folder" "${LOADED_JOBS:-50}") overruns"
    done
done
