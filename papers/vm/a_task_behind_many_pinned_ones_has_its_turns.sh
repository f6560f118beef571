# A program that may use one CPU only has its turns there, however many that may not use it stand before it in line.
# needs: onbeat-lab crew.c taskset
# cpus: 2
# time: virtual
# long: yes
for name in linux24 best berate; do
    rm -f /results/behind
    onbeat-lab scheduler start "$name" --quiet 2>/tmp/messages &
    scheduler=$!
    wait_until "$name is in force" 60 in_force "$name"
    crews=
    for _ in 1 2 3 4 5 6 7 8; do
        taskset -c 0 crew 16 headless &
        crews="$crews $!"
    done
    sleep 1
    taskset -c 1 crew 2 hog 3 /results/behind
    kill $crews
    least=$(cut -d ' ' -f 4 /results/behind | sort -n | head -n 1)
    echo "$name: of 3 s the two threads had $(cut -d ' ' -f 4 /results/behind | tr '\n' ' ')us"
    check "$name: each of two threads on the other CPU had its part" "$least" -ge 600000
    stops "$name" "$scheduler" /tmp/messages
done
