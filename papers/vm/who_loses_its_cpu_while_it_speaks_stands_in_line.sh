# A program that says a million times a second that it missed a deadline has no more of the CPU than a hog that is silent. The kernel
# keeps who is interrupted while it is heard on its CPU: it may not leave that then.
# needs: onbeat onbeat-lab srtgen.c
# long: yes
used_ms() { # LOG: what its jobs used, without those of the first second
    awk -F , 'NR == 2 { began = $2 } NR > 1 && $2 - began > 1000000000 { used += $6 } END { printf "%d\n", used / 1000000 }' "$1"
}

cat >/tmp/chosen <<'CHOSEN'
srtgen share=1000 period_us=10000 cry=1000000 seconds=16 log=/tmp/flooding &
srtgen share=1000 period_us=10000 seconds=16 log=/tmp/silent &
wait
CHOSEN

# Under berate who never blocks loses its turn when it is interrupted, as the rules want it: of two alike one has up to 51.3% by that alone.
for name in linux24 best; do
    onbeat-lab scheduler start "$name" --quiet -- sh -u /tmp/chosen 2>/tmp/messages
    check "$name had nothing to say" ! -s /tmp/messages
    flooding=$(used_ms /tmp/flooding) silent=$(used_ms /tmp/silent)
    check "$name: both computed" $((flooding + silent)) -gt 13000
    check "$name: who speaks has no more than 51%" $((100 * flooding)) -le $((51 * (flooding + silent)))
done
