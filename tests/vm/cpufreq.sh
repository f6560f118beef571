#!/usr/bin/env bash
# Makes the ACPI table from which the kernel's own acpi-cpufreq learns that the guest's CPUs have several
# frequencies.
#
# QEMU's machine has none. The table adds what firmware of a real one says (ACPI 6.5, section 8.4.5) to the
# CPUs that QEMU describes: the frequencies (_PSS), where to ask for one (_PCT), that none is barred (_PPC), and
# that each CPU has its own (_PSD). Asking is writing the frequency's number to an I/O port, and the driver reads
# there whether it was granted; so each CPU gets a port that keeps what is written to it and does nothing else:
# the page registers of DMA channels that the guest has no device for.
#
# usage: tests/vm/cpufreq.sh OUT.aml MHZ... (the highest first)
set -euo pipefail
out=$1
shift
ports=(0x87 0x83 0x81 0x82)

# MHz, mW (nobody asks; the square of the frequency is as good as anything), latencies in us, control, status.
states() {
    local number=0 mhz
    for mhz; do
        printf '            Package () { %d, %d, 10, 10, %d, %d },\n' "$mhz" $((mhz * mhz / 100)) "$number" "$number"
        number=$((number + 1))
    done
}

cpu() { # NUMBER PORT STATES
    cat <<ASL
    If (CondRefOf (\\_SB.CPUS.C00$1)) {
        Scope (\\_SB.CPUS.C00$1) {
            Name (_PCT, Package () {
                ResourceTemplate () { Register (SystemIO, 8, 0, $2) },
                ResourceTemplate () { Register (SystemIO, 8, 0, $2) } })
            Name (_PSS, Package () {
$3
            })
            Name (_PPC, 0)
            Name (_PSD, Package () { Package () { 5, 0, $1, 0xFC, 1 } })
        }
    }
ASL
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
    echo 'DefinitionBlock ("", "SSDT", 2, "ONBEAT", "CPUFREQ", 1) {'
    for number in 0 1 2 3; do
        echo "    External (\\_SB.CPUS.C00$number, DeviceObj)"
    done
    for number in "${!ports[@]}"; do
        cpu "$number" "${ports[number]}" "$(states "$@")"
    done
    echo '}'
} >"$work/table.asl"
if ! iasl -p "$work/table" "$work/table.asl" >"$work/said" 2>&1; then
    cat "$work/said" >&2
    exit 1
fi
mv "$work/table.aml" "$out"
