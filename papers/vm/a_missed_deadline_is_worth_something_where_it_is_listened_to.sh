# A decoder that needs four fifths of the CPU notifies missed deadlines: each scheduler of them makes something of some, and
# of none where it is told not to listen.
# needs: onbeat onbeat-lab srtgen.c
# long: yes
rounds=$(srtgen measure=1)

# counted WHAT: of it, by the end.
counted() {
    tail -n 1 /tmp/turns | sed "s/.*\"$1\":\([0-9]*\).*/\1/"
}

for name in linux24 best berate; do
    for mdn in 1 0; do
        cat >/tmp/chosen <<CHOSEN
srtgen rounds_per_ms=$rounds share=1000 period_us=10000 seconds=5 log=/dev/null &
srtgen rounds_per_ms=$rounds period_us=40000 share=800 seed=16 mdn=1 seconds=5 log=/dev/null
wait
CHOSEN
        onbeat-lab scheduler start "$name" --json --set "mdn=$mdn" -- sh /tmp/chosen >/tmp/turns
        check "$name, mdn=$mdn: there were notifications" "$(counted notifications)" -ge 5
        if [ "$mdn" = 1 ]; then
            check "$name listens" "$(counted listened)" -ge 1
        else
            check "$name, told not to, does not" "$(counted listened)" = 0
        fi
    done
done
