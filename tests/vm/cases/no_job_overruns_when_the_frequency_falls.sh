# LFS++'s Fig. 10, short: when the frequency falls, a job overruns its budget, unless the budget was raised first.
# needs: onbeat cycles.c
# cpufreq: 2400 1500
# long: yes
load_cpufreq
run_while_frequency_falls /results/alone userspace alone 25 60
run_while_frequency_falls /results/protocol userspace protocol 25 60
check "the frequency fell beside an onbeat that did not know" "$(lowest_khz /results/alone)" = 1500000
check "it fell under one that did" "$(lowest_khz /results/protocol)" = 1500000
check "without the protocol jobs overran" "$(overruns /results/alone 25)" -gt 0
check "with it none did" "$(overruns /results/protocol 25)" = 0
