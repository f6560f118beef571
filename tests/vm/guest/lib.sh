# What a case can use in the guest: checks that say what they saw.

# check "WHAT MUST HOLD" TEST-EXPRESSION...: as test(1); ends the case if it does not hold.
check() {
    what=$1
    shift
    if test "$@"; then
        echo "ok: $what"
    else
        echo "NOT SO: $what: $*"
        exit 1
    fi
}

# The policy of a thread, by field 41 of its stat file: 0 other, 1 fifo, 2 rr, 6 deadline.
policy_of() {
    sed 's/.*) //' "/proc/$1/stat" | cut -d ' ' -f 39
}

# Loads the kernel's driver of frequencies and the governor that leaves them to user space; for a case whose head
# names frequencies.
load_cpufreq() {
    for module in /lib/modules/acpi-cpufreq.ko* /lib/modules/cpufreq_userspace.ko*; do
        insmod "$module"
    done
    check "the CPU has frequencies" -d /sys/devices/system/cpu/cpufreq/policy0
}
