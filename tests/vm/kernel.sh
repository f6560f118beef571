#!/usr/bin/env bash
# Fetches the kernel that the virtual machine boots, once, and prints the folder that holds it.
#
# It is one of Debian's own packages, found through the archive that this machine's apt already uses,
# with a private apt configuration: nothing of the machine's apt changes. If the pinned version has
# left the archive, the next of the list is taken, and said so.
#
# usage: tests/vm/kernel.sh [first|second]
set -euo pipefail

# Seen to boot and to load schedulers; the first that can be had is taken.
first=(linux-image-6.18.15+deb13-cloud-amd64 linux-image-6.18.12+deb13-cloud-amd64
    linux-binary-7.0.13+deb13-cloud-amd64)
second=(linux-binary-7.0.13+deb13-cloud-amd64 linux-binary-7.0.12+deb13-cloud-amd64
    linux-image-6.19.14+deb13-cloud-amd64)

case "${1:-first}" in
first) packages=("${first[@]}") ;;
second) packages=("${second[@]}") ;;
*)
    echo "usage: tests/vm/kernel.sh [first|second]" >&2
    exit 2
    ;;
esac

cache=${ONBEAT_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onbeat/vm}
for package in "${packages[@]}"; do
    if [ -s "$cache/$package/vmlinux" ] && [ -e "$cache/$package/modules" ]; then
        echo "$cache/$package"
        exit 0
    fi
done

mkdir -p "$cache"
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
    -o Dir::Etc::SourceParts=/dev/null -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
apt-get "${private[@]}" update >&2

for package in "${packages[@]}"; do
    if (cd "$work" && apt-get "${private[@]}" download "$package" >&2); then
        break
    fi
    echo "tests/vm: $package is no longer in the archive, trying the next" >&2
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
basename "$image" | sed 's/^vmlinuz-//' >"$work/ready/release"
rm -rf "${cache:?}/$package"
mv "$work/ready" "$cache/$package"
echo "$cache/$package"
