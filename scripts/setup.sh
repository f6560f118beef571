#!/usr/bin/env bash
# Installs what a make target needs on a Debian or Ubuntu, and says what that is.
#
# What is there already is left alone, so a second run does nothing. Without apt it names what it
# would have installed and goes on if the commands are there under other packages' names.
#
# usage: scripts/setup.sh build|test|check|demo|experiments|strangers|fuzz|vm|packages|cross|release
set -euo pipefail
cd "$(dirname "$0")/.."

build=(gcc g++ libc6-dev make pkg-config clang llvm libelf-dev zlib1g-dev ca-certificates
    curl git)
hogs=(stress-ng)
# What libonbeat's player is built from, and what shows its window.
player=(libavformat-dev libavcodec-dev libswscale-dev libx11-dev xvfb)
# A kernel in an emulated machine.
emulated=(qemu-system-x86 acpica-tools busybox-static cpio lz4 zstd python3 rt-app)
# PipeWire and who links players to it.
sound=(pipewire pipewire-bin wireplumber dbus-daemon)
# The service's tests have a bus of their own, with clients of RealtimeKit, polkit and other managers on it.
bus=(dbus-bin rtkit "${sound[@]}" pulseaudio polkitd gamemode-daemon systemd libsystemd0 xdg-desktop-portal)
# What the Python package needs, if all of it is used.
python=(python3 python3-jeepney python3-pandas)
# Programs that the shipped rules name, and what starts containers.
known=(podman crun mplayer mpv gstreamer1.0-tools gstreamer1.0-plugins-base jackd2 pipewire-pulse fluidsynth sway cage xwayland weston
    vlc-bin vlc-plugin-base dosbox snapserver snapclient supercollider-server)
# On the live kernel, the tests run real programs: rt-app, ffmpeg, setpriv and taskset. Plots need a font.
test=("${build[@]}" "${hogs[@]}" "${bus[@]}" "${known[@]}" "${player[@]}" "${python[@]}" ffmpeg util-linux mandoc musl-tools valgrind
    fonts-dejavu-core "${emulated[@]}")
check=("${build[@]}" clang-format shellcheck)
demo=("${build[@]}" "${hogs[@]}" ffmpeg mplayer xvfb fonts-dejavu-core)
# Programs that experiments start.
programs=(mpv gstreamer1.0-tools gstreamer1.0-libav gstreamer1.0-plugins-base gstreamer1.0-plugins-good
    gstreamer1.0-plugins-bad gstreamer1.0-x
    chromium jackd2 jack-example-tools rt-tests chocolate-doom freedoom libgl1-mesa-dri libegl1)
experiments=("${demo[@]}" "${player[@]}" "${sound[@]}" "${programs[@]}" strace bpftool madplay libgsm-tools "${emulated[@]}")
# Programs of all kinds, as papers/experiments/strangers starts them.
strangers=("${demo[@]}" "${programs[@]}" libx11-dev libxdamage-dev vlc-bin vlc-plugin-base vlc-plugin-video-output firefox-esr
    golang-go default-jdk-headless nodejs python3 mono-runtime mono-mcs wine wine64 gcc-mingw-w64-x86-64-win32 ruby erlang-base
    python3-pyqt5 python3-gi python3-gi-cairo gir1.2-gtk-3.0 python3-pygame neverball love godot3-runner dosbox weston sway
    libjack-jackd2-dev pipewire pipewire-jack fluidsynth timgm6mb-soundfont qemu-system-x86 etcd-server procps
    cage ardour zynaddsubfx jalv mda-lv2 python3-rosmaster libroscpp-dev libsensor-msgs-dev libstd-msgs-dev libnodeletlib-tools
    ros-image-publisher libimage-publisher-dev ros-image-proc libimage-proc-dev pkg-config)
fuzz=("${build[@]}")
vm=("${build[@]}" "${emulated[@]}" ffmpeg mplayer util-linux jackd2 jack-example-tools)
packages=("${build[@]}" dpkg-dev debhelper dh-python pybuild-plugin-pyproject python3-all python3-setuptools lintian fakeroot
    debootstrap debian-archive-keyring util-linux)
# Packages for other distributions and for arm64, whose libraries come from Debian's own packages for it.
cross=("${packages[@]}" makepkg libarchive-tools pacman-package-manager rpm squashfs-tools python3 musl-tools gcc-aarch64-linux-gnu musl-dev:arm64 libc6-dev:arm64
    libelf-dev:arm64 zlib1g-dev:arm64 qemu-user-static qemu-system-arm cpio nix-bin)
release=("${build[@]}" python3)

packages_for() {
    case "$1" in
    build) echo "${build[@]}" ;;
    test) echo "${test[@]}" ;;
    check) echo "${check[@]}" ;;
    demo) echo "${demo[@]}" ;;
    experiments) echo "${experiments[@]}" ;;
    strangers) echo "${strangers[@]}" ;;
    fuzz) echo "${fuzz[@]}" ;;
    vm) echo "${vm[@]}" ;;
    packages) echo "${packages[@]}" ;;
    cross) echo "${cross[@]}" ;;
    release) echo "${release[@]}" ;;
    *)
        echo "usage: scripts/setup.sh build|test|check|demo|experiments|strangers|fuzz|vm|packages|cross|release" >&2
        exit 2
        ;;
    esac
}

# A library may be installed for two architectures.
installed() { # PACKAGE[:ARCHITECTURE]
    local architecture
    architecture=$(dpkg --print-architecture)
    case "$1" in *:*) architecture=${1#*:} ;; esac
    dpkg-query -W -f='${Architecture} ${db:Status-Status}\n' "$1" 2>/dev/null |
        grep -qxE "($architecture|all) installed"
}

# In Debian 12 jackd2 had jackd's clients, too.
name_here() {
    if [ "$1" = jack-example-tools ] && grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; then
        echo jackd2
    else
        echo "$1"
    fi
}

install_packages() {
    local missing=() package
    for package in "$@"; do
        package=$(name_here "$package")
        installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "installing with apt-get: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    scripts/as-root.sh apt-get update -qq
    # The suite of strangers goes on without a program that another release does not have.
    if [ "$kind" = strangers ]; then
        for package in "${!missing[@]}"; do
            [ -n "$(apt-cache show "${missing[package]}" 2>/dev/null)" ] || unset "missing[package]"
        done
    fi
    scripts/as-root.sh apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# Succeeds if the first version is at least the second.
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

install_rust() {
    local wanted have
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    have=$(cargo --version 2>/dev/null | cut -d ' ' -f 2) || have=
    if [ -n "$have" ] && at_least "$have" "$wanted"; then
        return 0
    fi
    echo "Rust $wanted or newer is needed, here is ${have:-none}: installing the stable toolchain with rustup"
    if command -v rustup >/dev/null; then
        rustup toolchain install stable --profile minimal
        rustup default stable
    else
        # The script is that of https://sh.rustup.rs, at the host that the toolchain comes from as well.
        curl --proto '=https' --tlsv1.2 -sSf https://static.rust-lang.org/rustup/rustup-init.sh |
            sh -s -- -y --no-modify-path --profile minimal
    fi
}

install_component() {
    cargo "$1" --version >/dev/null 2>&1 && return 0
    echo "installing with rustup: $2"
    rustup component add "$2"
}

install_cargo_cyclonedx() {
    cargo cyclonedx --help >/dev/null 2>&1 && return 0
    echo "installing with cargo: cargo-cyclonedx"
    cargo install --quiet --locked cargo-cyclonedx
}

# The libraries of other targets of rustc, if rustup installed it. scripts/packages.sh skips a package without its library.
install_targets() { # TARGET...
    command -v rustup >/dev/null || return 0
    rustup --quiet target add "$@"
}

kind=${1-}
# Word splitting is meant: package names hold no spaces.
# shellcheck disable=SC2046
set -- $(packages_for "$kind")
[ $# -gt 0 ] || exit 2
if command -v dpkg-query >/dev/null; then
    if [ "$kind" = cross ] && ! dpkg --print-foreign-architectures | grep -qx arm64; then
        echo "adding Debian's packages for arm64 to those that can be installed: dpkg --add-architecture arm64"
        scripts/as-root.sh dpkg --add-architecture arm64
    fi
    install_packages "$@"
else
    echo "no apt here: if something is missing below, install what Debian calls: $*" >&2
fi

PATH="$PATH:$HOME/.cargo/bin"
install_rust
case "$kind" in
check)
    install_component fmt rustfmt
    install_component clippy clippy
    ;;
cross) install_targets aarch64-unknown-linux-gnu aarch64-unknown-linux-musl x86_64-unknown-linux-musl ;;
release) install_cargo_cyclonedx ;;
esac
