#!/usr/bin/env bash
# Installs one of the packages in a folder into an empty root, and compares the files there with what scripts/install.sh
# installs. systemd has to find nothing wrong with the units, the program has to run, and the version is that of the
# checkout. Of the source for builders without a network, all crates that both workspaces need have to be there.
#
# usage (as root): tests/packages/others.sh deb-arm64|arch|rpm|tarball|tarball-arm64|sysext|source FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."

kind=$1
folder=$(realpath "$2")
version=$(scripts/version.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir "$root"
prefix=/usr libdir=/usr/lib program=()
[ "$(id -u)" -eq 0 ] || {
    echo "packages are installed as root"
    exit 77
}
needs() {
    command -v "$1" >/dev/null || {
        echo "there is no $1"
        exit 77
    }
}
is() { # WHAT IT-IS IT-SHOULD-BE
    [ "$2" = "$3" ] || {
        echo "the $1 is $2 where $3 belongs"
        exit 1
    }
}

case "$kind" in
deb-arm64)
    needs qemu-aarch64-static
    for made in "$folder"/*onbeat*_"$version"-1_arm64.deb; do
        dpkg-deb --extract "$made" "$root"
    done
    is version "$(dpkg-deb --field "$folder/onbeat_$version-1_arm64.deb" Version Architecture | sed 's/.*: //' | xargs)" \
        "$version-1 arm64"
    libdir=/usr/lib/aarch64-linux-gnu emulator=(qemu-aarch64-static)
    export ZSHDIR=/usr/share/zsh/vendor-completions
    program=(qemu-aarch64-static "$root/usr/bin/onbeat")
    ;;
arch)
    needs pacman
    wanted=${version/\~/} wanted=${wanted/+/.}
    made=("$folder/onbeat-$wanted"-1-*.pkg.tar.*)
    mkdir -p "$root/var/lib/pacman"
    pacman --root "$root" --dbpath "$root/var/lib/pacman" --noconfirm -Udd --noscriptlet "${made[0]}" >/dev/null
    is version "$(pacman --root "$root" --dbpath "$root/var/lib/pacman" -Q onbeat)" "onbeat $wanted-1"
    [ "$(vercmp 1.0git1 1.0)$(vercmp 1.0.git1 1.0)$(vercmp 1.0.git1 1.0.1)" = -11-1 ]
    program=("$root/usr/bin/onbeat")
    ;;
rpm)
    needs rpm
    made=("$folder/onbeat-$version"-*.x86_64.rpm "$folder"/libonbeat{,-devel}-"$version"-*.x86_64.rpm)
    # Debian's rpm says on standard error that it is Debian's.
    rpm --root "$root" --dbpath /var/lib/rpm --nodeps --noscripts --install "${made[@]}" 2>/dev/null
    is version "$(rpm --root "$root" --dbpath /var/lib/rpm --query --queryformat '%{version} ' onbeat libonbeat libonbeat-devel)" \
        "$version $version $version "
    libdir=/usr/lib64
    program=("$root/usr/bin/onbeat")
    ;;
tarball | tarball-arm64)
    arch=x86_64 emulator=()
    [ "$kind" = tarball ] || arch=aarch64 emulator=(/emulator)
    tar -C "$work" -xzf "$folder/onbeat-$version-linux-$arch.tar.gz"
    unpacked=$work/onbeat-$version-linux-$arch
    DESTDIR=$root "$unpacked/install.sh"
    # Its changed configuration stays, and all else goes.
    echo '# by hand' >>"$root/etc/onbeat/onbeat.toml"
    DESTDIR=$root "$unpacked/install.sh" >/dev/null
    grep -q 'by hand' "$root/etc/onbeat/onbeat.toml"
    DESTDIR=$root "$unpacked/install.sh" --remove >/dev/null
    is rest "$(find "$root" ! -type d)" "$root/etc/onbeat/onbeat.toml"
    rm "$root/etc/onbeat/onbeat.toml"
    DESTDIR=$root "$unpacked/install.sh"
    prefix=/usr/local libdir=/usr/local/lib
    [ "$kind" = tarball ] || { needs qemu-aarch64-static && cp "$(command -v qemu-aarch64-static)" "$root/emulator"; }
    # There is nothing but onbeat in this root.
    program=(chroot "$root" "${emulator[@]}" /usr/local/bin/onbeat)
    ;;
sysext)
    needs unsquashfs
    unsquashfs -quiet -no-progress -force -dest "$root" "$folder/onbeat.raw" >/dev/null
    is "folder beside /usr" "$(ls "$root")" usr
    is release "$(xargs <"$root/usr/lib/extension-release.d/extension-release.onbeat")" \
        'ID=_any ARCHITECTURE=x86-64 EXTENSION_RELOAD_MANAGER=1'
    [ -e "$root/usr/lib/systemd/system/multi-user.target.wants/onbeat.service" ]
    # There is nothing but onbeat in this root.
    program=(chroot "$root" /usr/bin/onbeat)
    ;;
source)
    needs dpkg-source
    dpkg-source --no-check --extract "$folder/onbeat_$version-1.dsc" "$work/source" >/dev/null
    for workspace in . papers; do
        (cd "$work/source/$workspace" && CARGO_HOME=$work/none cargo --config "$work/source/vendor/config.toml" fetch --locked --offline)
    done
    exit
    ;;
*)
    sed -n 's/^# usage/usage/p' "$0" >&2
    exit 2
    ;;
esac

# Manual pages may be compressed; a static tarball has no shared library.
node=$(command -v "$root$prefix/bin/onbeat-node" || true)
case "$kind" in
deb-arm64 | tarball*)
    if [ -z "$node" ] || [ ! -e "$root$prefix/lib/systemd/system/onbeat-node.service" ]; then
        echo "there is no onbeat-node, or no unit for it"
        exit 1
    fi
    ;;
esac
files() { (cd "$1" && find ./usr ./etc ! -type d) | sed 's|^\.||; s|\.gz$||' | sort; }
extra='/licenses/|/.build-id/|/share/doc/|/share/lintian/'
[ "$libdir" != /usr/local/lib ] || extra+='|libonbeat\.so'
[ "$kind" != sysext ] || extra+='|^/etc/|/include/|/lib/libonbeat|/pkgconfig/|/man[37]/|/extension-release|\.wants/'
ONBEAT=${ONBEAT:-$(command -v "$root$prefix/bin/onbeat")} NODE=$node EMULATOR=${emulator+qemu-aarch64-static} TARGET_DIR=$work/build PREFIX=$prefix LIBDIR=$libdir \
    DESTDIR=$work/expected scripts/install.sh >/dev/null
files "$work/expected" | grep -vE "$extra" | diff - <(files "$root" | grep -vE "$extra")
[ -f "$root$prefix/share/doc/onbeat/onbeat.toml" ] || {
    echo "the service names $prefix/share/doc/onbeat/onbeat.toml where a configuration is wrong, and it is not there"
    exit 1
}

is answer "$("${program[@]}" --version)" "onbeat $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)"
if [ -n "$node" ]; then
    is answer "$("${program[@]:0:${#program[@]}-1}" "${program[-1]}-node" --version)" "onbeat-node $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)"
fi
there=$root
[ "${program[0]}" != chroot ] || there=
mkdir -p "$root/tmp"
cp tests/traces/onbeat/mplayer25.reserved.gz "$root/tmp"
answers() { # PATTERN COMMAND...
    local pattern=$1
    shift
    "${program[@]}" "$@" >"$work/said"
    grep -qE "$pattern" "$work/said" || {
        echo "onbeat $1 does not answer $pattern:"
        cat "$work/said"
        exit 1
    }
}
answers '^ +2269 +mplayer +40 ms ' analyze "$there/tmp/mplayer25.reserved.gz"
answers ' 2269 +mplayer +reserved ' replay "$there/tmp/mplayer25.reserved.gz"
# What it finds depends on the machine.
mkdir -p "$root/proc"
answers '^onbeat .* on Linux ' doctor || true

# The static library is for programs of either C library.
if [ "$kind" = tarball ]; then
    for compiler in cc musl-gcc; do
        for example in libonbeat/examples/{decode_in_time,own_exceptions}.c; do
            "$compiler" -std=gnu11 -o "$work/example" -I"$root/usr/local/include" "$example" \
                "$root/usr/local/lib/libonbeat.a" -pthread
            "$work/example" >/dev/null
        done
    done
fi

# The image of the DaemonSet holds the two static programs, and they run there.
if [ "$kind" = tarball ] && command -v podman >/dev/null; then
    podman=(podman --root "$work/storage" --runroot "$work/run" --storage-driver=vfs)
    "${podman[@]}" build --quiet --tag onbeat:test --file packaging/kubernetes/Containerfile "$unpacked/root/usr/local/bin" >/dev/null
    container=$("${podman[@]}" create onbeat:test onbeat --version)
    is image "$("${podman[@]}" export "$container" | tar -t | grep -v '/$' | grep '^usr' | sort | xargs)" \
        'usr/bin/onbeat usr/bin/onbeat-node'
    for name in onbeat onbeat-node; do
        # It wants one version of cgroups, and no more files than this machine may open.
        # shellcheck disable=SC2016 # the shell that it starts fills in its own words
        said=$(unshare --mount sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"' sh "${podman[@]}" run --rm --network=none \
            --ulimit=nofile=512:512 --ulimit=nproc=500:500 --read-only --cap-drop=all onbeat:test "$name" --version)
        is "program in the image" "$said" "$name $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)"
    done
    "${podman[@]}" rm --force --all >/dev/null
fi

# What systemd brings.
needs systemd-analyze
mkdir -p "$root/usr/bin"
install -m 755 /dev/null "$root/usr/bin/busctl"
find "$root$prefix/lib/systemd/system" -name '*.service' -printf '%f\n' | while read -r unit; do
    systemd-analyze verify --root="$root" --man=no --recursive-errors=no "$unit"
done
