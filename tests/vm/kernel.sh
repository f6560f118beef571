#!/usr/bin/env bash
# Fetches the kernel that the virtual machine boots, once, and prints the folder that holds it.
#
# It is one of Debian's own packages, found through the archive that this machine's apt already uses,
# with a private apt configuration: nothing of the machine's apt changes. If the pinned version has
# left the archive, the next of the list is taken, and said so.
#
# Of a kernel that comes without the drivers of frequencies the folder has a file modules/none, which says why.
#
# Ends with 77 where this machine cannot have such a kernel, and with 76 if the archive has none of them.
#
# usage: tests/vm/kernel.sh [first|second|SERIES|VERSION|FOLDER]
#        SERIES is 6.16 to 7.0, 7.2 or 7.3, or 5.10, 6.1 or 6.12, the one of Debian 11, 12 or 13; VERSION one of Debian's like
#        7.1.13, FOLDER a path to one with vmlinux, release and modules, as this makes them
set -euo pipefail

# Debian's names of these versions. Up to 6.18 a linux-image holds the kernel and its modules; later a linux-binary the
# kernel, and a package of its own the modules, which does not stay in the archive as long.
packages_of() { # VERSION...
    local version
    for version; do
        case "$version" in
        6.1[678].*) echo "linux-image-$version+deb13-cloud-amd64" ;;
        *) echo "linux-binary-$version+$release-cloud-amd64" ;;
        esac
    done
}

suite=trixie-backports release=deb13
# Of a release's own kernel each update replaces the one before: the archive says which it is.
own=
# The first that can be had is taken.
case "${1:-first}" in
first) versions='6.18.15 6.18.12 6.17.13' ;;
# Not a later one yet: on 7.3.4 a program beside a new partition is refused its reservation, and the case of threads
# that come and go did not end within nine minutes.
second) versions='6.17.13 6.17.8 6.16.12' ;;
6.16) versions='6.16.3 6.16.12' ;;
6.17) versions='6.17.13 6.17.8' ;;
6.18) versions='6.18.15 6.18.12 6.18.9' ;;
6.19) versions='6.19.14 6.19.13 6.19.11' ;;
7.0) versions='7.0.13 7.0.12 7.0.10' ;;
# The builds for trixie misdescribe their functions for schedulers; so do all of 7.1.
7.2) versions=7.2.13 suite=sid release=deb14 ;;
7.3) versions='7.3.4' ;;
5.10) own=$1 suite=bullseye versions= ;;
6.1) own=$1 suite=bookworm versions= ;;
6.12) own=$1 suite=trixie versions= ;;
*/*)
    echo "$1"
    exit
    ;;
[67].*.*) versions=$1 ;;
*)
    sed -n '/^# usage: /,/^set /{s/^# \{0,1\}//p}' "$0" >&2
    exit 2
    ;;
esac
# Word splitting is meant: versions hold no spaces.
# shellcheck disable=SC2086
mapfile -t packages < <(packages_of $versions)

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
if [ -n "$own" ]; then
    mapfile -t packages < <(find "$cache" -maxdepth 1 -name "linux-image-$own.*" -printf '%f\n' | sort -rV)
fi
for package in "${packages[@]}"; do
    if [ -s "$cache/$package/vmlinux" ] && [ -n "$(ls "$cache/$package/modules" 2>/dev/null)" ]; then
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
        "run this on a Debian, or make a folder $cache/${packages[0]:-linux-image-$own.0} with a kernel's vmlinux, a file release with its name," \
        "and a folder modules with its acpi-cpufreq.ko and cpufreq_userspace.ko, or with a file none that says why not" >&2
    exit 77
fi

mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/unpacked"
echo "deb [signed-by=$keyring] $archive $suite main" >"$work/sources.list"
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

if [ -n "$own" ]; then
    mapfile -t packages < <(apt-cache "${private[@]}" depends linux-image-cloud-amd64 | sed -n 's/.*Depends: //p')
fi

# A package that is only named by another one is known, but there is nothing to show of it.
has() { # PACKAGE
    [ -n "$(apt-cache "${private[@]}" show "$1" 2>/dev/null)" ]
}

fetch() { # PACKAGE
    local try
    # What the archive does not have will not come by asking again.
    has "$1" || return 1
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
    for package in "${packages[@]}"; do
        if has "$package"; then
            echo "tests/vm: $archive does not hand out $package: try again later" >&2
            exit 1
        fi
    done
    echo "tests/vm: none of these kernels can be had: ${packages[*]}" >&2
    exit 76
fi
modules=${package/linux-binary-/linux-modules-} none=
if [ "$modules" != "$package" ] && ! fetch "$modules"; then
    if has "$modules"; then
        echo "tests/vm: $archive does not hand out $modules: try again later" >&2
        exit 1
    fi
    none="the archive has no $modules"
fi
for file in "$work"/linux-*.deb; do
    dpkg -x "$file" "$work/unpacked"
done

# The bare vmlinux boots a second faster than the packed image that holds it.
image=$(find "$work/unpacked" -name 'vmlinuz*' | head -n 1)
mkdir -p "$work/ready"
unpacker=$(python3 - "$image" "$work/packed" <<'PYTHON'
import struct, sys
# Linux's boot protocol: how many sectors come before the kernel, and where in it the packed one lies; its length in
# front of its end.
image = open(sys.argv[1], "rb").read()
(sectors,) = struct.unpack_from("<B", image, 0x1F1)
begin, length = struct.unpack_from("<II", image, 0x248)
begin += 512 * ((sectors or 4) + 1)
packed = image[begin : begin + length - 4]
open(sys.argv[2], "wb").write(packed)
print({b"\x28\xb5\x2f\xfd": "zstd", b"\x02\x21\x4c\x18": "lz4"}.get(packed[:4], ""))
PYTHON
)
if [ -z "$unpacker" ]; then
    echo "tests/vm: $package is packed neither with zstd nor with lz4" >&2
    exit 1
fi
"$unpacker" -dc "$work/packed" >"$work/ready/vmlinux"
if [ "$(head -c 4 "$work/ready/vmlinux" | tail -c 3)" != ELF ]; then
    echo "tests/vm: $package holds no kernel that can be unpacked" >&2
    exit 1
fi
# The driver of frequencies, and the governor that leaves them to user space, are not built in.
mkdir "$work/ready/modules"
find "$work/unpacked" \( -name 'acpi-cpufreq.ko*' -o -name 'cpufreq_userspace.ko*' \) -exec cp {} "$work/ready/modules/" \;
if [ ! -e "$(find "$work/ready/modules" -name 'acpi-cpufreq.ko*')" ]; then
    echo "${none:-$modules has no acpi-cpufreq}" >"$work/ready/modules/none"
fi
echo "${package#linux-*-}" >"$work/ready/release"
rm -rf "${cache:?}/$package"
mv "$work/ready" "$cache/$package"
echo "$cache/$package"
