#!/usr/bin/env bash
# Fetches the kernel that the virtual machine boots, once, and prints the folder that holds it.
#
# It is one of Debian's own packages, found through the archive that this machine's apt already uses,
# with a private apt configuration: nothing of the machine's apt changes. If the pinned version has
# left the archive, the next of the list is taken, and said so.
#
# Ends with 77 where there is no such kernel to be had.
#
# usage: tests/vm/kernel.sh [first|second|third]
set -euo pipefail

# The first that can be had is taken. Up to 6.18 a linux-image holds the kernel and its modules.
first=(linux-image-6.18.15+deb13-cloud-amd64 linux-image-6.18.12+deb13-cloud-amd64
    linux-image-6.17.13+deb13-cloud-amd64)
# Not a later one yet: on 7.3.4 a program beside a new partition is refused its reservation, and the case of threads
# that come and go did not end within nine minutes.
second=(linux-image-6.17.13+deb13-cloud-amd64 linux-image-6.17.8+deb13-cloud-amd64
    linux-image-6.16.12+deb13-cloud-amd64)
# For the schedulers, whose functions in the kernel change their names. From 7.0 on the drivers are in a package of their
# own, which does not stay in the archive as long; these cases need none.
third=(linux-binary-7.0.13+deb13-cloud-amd64 linux-binary-7.0.12+deb13-cloud-amd64
    linux-binary-7.0.10+deb13-cloud-amd64)
drivers=2

case "${1:-first}" in
first) packages=("${first[@]}") ;;
second) packages=("${second[@]}") ;;
third) packages=("${third[@]}") drivers=0 ;;
*)
    echo "usage: tests/vm/kernel.sh [first|second|third]" >&2
    exit 2
    ;;
esac

if [ "$(uname -m)" != x86_64 ]; then
    echo "tests/vm: the emulated machine is an x86-64, and the programs that it runs are this machine's:" \
        "run this on an x86-64" >&2
    exit 77
fi

cache=${ONBEAT_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onbeat/vm}
mkdir -p "$cache"
# Two at a time would fetch twice.
exec 9>"$cache/lock"
flock 9
for package in "${packages[@]}"; do
    if [ -s "$cache/$package/vmlinux" ] && [ "$(find "$cache/$package/modules" -name '*.ko*' | wc -l)" -ge "$drivers" ]; then
        echo "$cache/$package"
        exit 0
    fi
done

work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2016 # apt-get fills these in, not the shell
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
    grep -v security | head -n 1)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [ -z "$archive" ] || [ ! -e "$keyring" ]; then
    echo "tests/vm: the test kernel comes from Debian's archive, and this machine's apt has none:" \
        "put a vmlinux into $cache/${packages[0]} by hand, or run this on a Debian" >&2
    exit 77
fi

mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/unpacked"
echo "deb [signed-by=$keyring] $archive trixie-backports main" >"$work/sources.list"
private=(-qq -o "Dir::State::Lists=$work/lists" -o "Dir::Etc::SourceList=$work/sources.list"
    -o Dir::Etc::SourceParts=/dev/null -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root
    -o Acquire::Retries=3 -o APT::Update::Error-Mode=any)

# A network that fails for a moment is no reason to give up.
tries=5
for ((try = 1; ; try++)); do
    apt-get "${private[@]}" update >&2 && break
    if [ "$try" = "$tries" ]; then
        echo "tests/vm: $archive does not answer, after $tries tries: the test kernel is fetched from there once;" \
            "try again when it does" >&2
        exit 1
    fi
    sleep $((try * 5))
done

fetch() { # PACKAGE
    local try
    # What the archive does not have will not come by asking again.
    apt-cache "${private[@]}" show "$1" >/dev/null 2>&1 || return 1
    for ((try = 1; try <= tries; try++)); do
        (cd "$work" && apt-get "${private[@]}" download "$1" >&2) && return 0
        sleep $((try * 5))
    done
    return 1
}

for package in "${packages[@]}"; do
    fetch "$package" && break
    echo "tests/vm: $package cannot be had from $archive, trying the next" >&2
    package=
done
if [ -z "$package" ]; then
    echo "tests/vm: none of these kernels can be had: ${packages[*]}" >&2
    exit 1
fi
dpkg -x "$work"/linux-*.deb "$work/unpacked"

# The bare vmlinux boots a second faster than the packed image that holds it.
image=$(find "$work/unpacked/boot" -name 'vmlinuz-*' | head -n 1)
mkdir -p "$work/ready"
python3 - "$image" "$work/packed" <<'PYTHON'
import sys
image = open(sys.argv[1], "rb").read()
start = image.find(b"\x28\xb5\x2f\xfd")
if start < 0:
    sys.exit("tests/vm: this kernel is not packed with zstd")
open(sys.argv[2], "wb").write(image[start:])
PYTHON
# What follows the packed kernel in the image is not zstd's, and makes it complain at the end.
zstd -dcq "$work/packed" >"$work/ready/vmlinux" 2>/dev/null || true
if [ "$(head -c 4 "$work/ready/vmlinux" | tail -c 3)" != ELF ]; then
    echo "tests/vm: $package holds no kernel that can be unpacked" >&2
    exit 1
fi
# The driver of frequencies, and the governor that leaves them to user space, are not built in.
mkdir "$work/ready/modules"
find "$work/unpacked" \( -name 'acpi-cpufreq.ko*' -o -name 'cpufreq_userspace.ko*' \) -exec cp {} "$work/ready/modules/" \;
if [ "$(find "$work/ready/modules" -name '*.ko*' | wc -l)" -lt "$drivers" ]; then
    echo "tests/vm: $package has no acpi-cpufreq, or no userspace governor, as a module" >&2
    exit 1
fi
echo "${package#linux-*-}" >"$work/ready/release"
rm -rf "${cache:?}/$package"
mv "$work/ready" "$cache/$package"
echo "$cache/$package"
