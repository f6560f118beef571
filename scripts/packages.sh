#!/usr/bin/env bash
# Makes the packages of the commit that is checked out, for each distribution, in $TARGET_DIR/packages. All of them
# have what scripts/install.sh installs. A package that this machine cannot make is skipped with the reason; with CI set it
# fails.
#
# ONBEAT is a binary to package in place of building one.
#
# usage: scripts/packages.sh [deb|deb-arm64|arch|rpm|tarball|tarball-arm64|sysext|source]...    # without any: all
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${TARGET_DIR:-target}")
packages=$target/packages
unset TARGET_DIR
version=$(scripts/version.sh)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
mkdir -p "$packages"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

# Says what is missing of some commands, and fails then.
has() { # COMMAND...
    local command
    for command; do
        command -v "$command" >/dev/null || {
            echo "there is no $command"
            return 1
        }
    done
}
cross() { # RUST-TARGET COMMAND...
    local installed
    installed=$(rustc --print sysroot)/lib/rustlib/$1
    shift
    [ -d "$installed" ] || {
        echo "rustc has no library for $(basename "$installed")"
        return 1
    }
    has "$@"
}
reason() { # PACKAGE
    case "$1" in
    deb) has dpkg-buildpackage clang ;;
    deb-arm64) cross aarch64-unknown-linux-gnu dpkg-buildpackage clang aarch64-linux-gnu-gcc qemu-aarch64-static ;;
    arch) has makepkg setpriv ;;
    rpm) has rpmbuild ;;
    tarball) cross x86_64-unknown-linux-musl clang x86_64-linux-musl-gcc ;;
    sysext) cross x86_64-unknown-linux-musl clang x86_64-linux-musl-gcc mksquashfs ;;
    source) has cargo dpkg-buildpackage ;;
    tarball-arm64) cross aarch64-unknown-linux-musl clang aarch64-linux-musl-gcc qemu-aarch64-static ;;
    *) echo "no such package; usage: scripts/packages.sh [deb|deb-arm64|arch|rpm|tarball|tarball-arm64|sysext|source]..." && return 1 ;;
    esac
}

# The binary of the Debian package serves the others with glibc, too.
binary() {
    local built=$target/deb/cargo/release/onbeat
    if [ -n "${ONBEAT-}" ]; then
        echo "$ONBEAT"
    elif [ -x "$built" ]; then
        echo "$built"
    else
        CARGO_TARGET_DIR=$target cargo build --release --locked -p onbeat >&2
        echo "$target/release/onbeat"
    fi
}

# A recipe with the version and the tarball's checksum filled in. pacman sorts letters at a version's end before
# it, and after a point behind it.
fill_in() { # FILE
    local arch_version=${version/\~/}
    sed "s|@VERSION@|$version|; s|@ARCH_VERSION@|${arch_version/+/.}|; s|@SHA256@|$(sha256sum <"$tarball" | cut -d ' ' -f 1)|" "$1"
}

make_deb() {
    TARGET_DIR="$target" scripts/deb.sh
    cp "$target"/deb/*.deb "$packages"
}
make_deb-arm64() {
    env -u ONBEAT TARGET_DIR="$target" scripts/deb.sh arm64
    cp "$target"/deb-arm64/*.deb "$packages"
}

make_arch() {
    local folder=$work/arch run=()
    mkdir "$folder"
    fill_in packaging/arch/PKGBUILD >"$folder/PKGBUILD"
    cp packaging/arch/onbeat.install "$tarball" "$folder"
    cp "$folder/PKGBUILD" "$packages"
    cp packaging/arch/onbeat.install "$packages"
    cp "$(binary)" "$work/onbeat"
    # makepkg refuses to run as root.
    if [ "$(id -u)" -eq 0 ]; then
        chown -R nobody "$folder"
        run=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
    fi
    (cd "$folder" && PACKAGER='The onbeat authors <onbeat@onbeat.invalid>' ONBEAT=$work/onbeat HOME=$folder \
        "${run[@]}" makepkg --nodeps --nocheck --noconfirm)
    cp "$folder"/onbeat-*.pkg.tar.* "$packages"
}

make_rpm() {
    local folder=$work/rpm
    mkdir -p "$folder/SOURCES"
    cp "$tarball" "$folder/SOURCES"
    fill_in packaging/fedora/onbeat.spec >"$packages/onbeat.spec"
    # Where Fedora keeps libraries and documents; its dependencies cannot be looked up on a Debian.
    rpmbuild -ba --nodeps --define "_topdir $folder" --define "onbeat $(realpath "$(binary)")" \
        --define '_libdir /usr/lib64' --define '_docdir_fmt %%{NAME}' --define 'use_source_date_epoch_as_buildtime 1' --define '_buildhost localhost' \
        "$packages/onbeat.spec"
    find "$folder" -name '*.rpm' -exec cp {} "$packages" \;
}

install_static() { # ARCH EMULATOR PREFIX ROOT
    local static name
    static=$(TARGET_DIR=$target scripts/static.sh "$1")
    mkdir -p "$4" "$work/static-$1"
    for name in onbeat onbeat-node; do
        "$1-linux-gnu-strip" -o "$work/static-$1/$name" "$static/$name"
    done
    # A shared library would be bound to one C library.
    CC=$1-linux-musl-gcc AR=$1-linux-gnu-ar EXTRA="-idirafter /usr/include/$1-linux-gnu -idirafter /usr/include" TARGET_DIR=$work/$1 \
        ONBEAT=$work/static-$1/onbeat NODE=$work/static-$1/onbeat-node EMULATOR=$2 PREFIX=$3 DESTDIR=$4 scripts/install.sh
    rm "$4$3"/lib/libonbeat.so*
}
make_static() { # ARCH EMULATOR
    local folder=onbeat-$version-linux-$1
    install_static "$1" "$2" /usr/local "$work/$folder/root"
    cp packaging/tarball/install.sh README.md CHANGELOG.md LICENSE-* "$work/$folder"
    cp -r docs "$work/$folder"
    scripts/docs.sh "$work/$folder"
    tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
        -cf - "$folder" | gzip -9n >"$packages/$folder.tar.gz"
}
# systemd lays it over /usr: there is no /etc, and the service is switched on by being there.
make_sysext() {
    local root=$work/sysext
    install_static x86_64 '' /usr "$root"
    rm -r "${root:?}"/{etc,usr/include} "$root"/usr/{lib/libonbeat.a,lib/pkgconfig,share/man/man3,share/man/man7}
    mkdir -p "$root"/usr/lib/{extension-release.d,systemd/system/multi-user.target.wants}
    printf 'ID=_any\nARCHITECTURE=x86-64\nEXTENSION_RELOAD_MANAGER=1\n' >"$root/usr/lib/extension-release.d/extension-release.onbeat"
    ln -s ../onbeat.service "$root/usr/lib/systemd/system/multi-user.target.wants/onbeat.service"
    find "$root" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
    chmod -R go=rX "$root"
    mksquashfs "$root" "$packages/onbeat.raw" -all-root -noappend -quiet -no-progress
}
# What builders without a network make the packages from: the crates, and Debian's source package with them.
make_source() {
    local crates=$packages/onbeat-$version-vendor.tar.gz
    tar -C "$work" -xzf "$tarball"
    (cd "$work/onbeat-$version" && cargo vendor --locked --versioned-dirs --quiet --sync papers/Cargo.toml)
    printf '[source.%s]\n%s\n' crates-io 'replace-with = "vendor"' vendor 'directory = "vendor"' \
        >"$work/onbeat-$version/vendor/config.toml"
    tar -C "$work/onbeat-$version" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
        -cf - vendor | gzip -9n >"$crates"
    VENDOR=$crates TARGET_DIR=$target scripts/deb.sh source
    cp "$target"/deb-source/onbeat_* "$packages"
}
make_tarball() { make_static x86_64 ''; }
make_tarball-arm64() { make_static aarch64 qemu-aarch64-static; }

if [ $# -eq 0 ]; then
    set -- deb deb-arm64 arch rpm tarball tarball-arm64 sysext source
    find "$packages" -maxdepth 1 -type f -delete
fi
tarball=$(scripts/source.sh "$packages" "$version")
for package; do
    if ! why=$(reason "$package"); then
        echo "skipped: $package: $why"
        [ -z "${CI-}" ] || exit 1
        continue
    fi
    "make_$package"
done
ls -l "$packages"
