#!/usr/bin/env bash
# Installs onbeat under $DESTDIR$PREFIX: the binary with its man pages and completions, libonbeat with its own, and
# the service; --remove takes all of it away again. Says each file.
#
# The service is installed where the system looks for it, so only with a PREFIX of the system's own, /usr or
# /usr/local; SERVICE=yes or SERVICE=no says otherwise. With SERVICE=prefix all of it is below PREFIX, for distributions
# that look there.
#
# ONBEAT is the binary, if it is not the one that `cargo build --release` makes; NODE and LAB those of onbeat-node and
# onbeat-lab, if these are installed, too. EMULATOR runs them, if they are of another architecture. LIBDIR and ZSHDIR are for distributions that have a place of their own for libraries and completions.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
image=${DESTDIR-}
root=$image$prefix
target=${TARGET_DIR:-target}
binary=${ONBEAT:-$target/release/onbeat}
case "$prefix" in
/usr | /usr/local) service=${SERVICE:-yes} ;;
*) service=${SERVICE:-no} ;;
esac
outside=/usr etc=/etc
if [ "$service" = prefix ]; then
    service=yes outside=$prefix etc=$prefix/etc
fi

# What is installed where: SOURCE in a folder of generated files, then its place.
completions() { # PROGRAM
    echo "$1.bash $prefix/share/bash-completion/completions/$1"
    echo "_$1 ${ZSHDIR:-$prefix/share/zsh/site-functions}/_$1"
    echo "$1.fish $prefix/share/fish/vendor_completions.d/$1.fish"
}
node_unit="systemd/onbeat-node.service $prefix/lib/systemd/system/onbeat-node.service"

# SOURCE in packaging, then its place. The bus reads policies of /usr/share and /etc alone, and polkit actions of
# /usr/share.
service_files() {
    local policies=/etc/dbus-1
    [ "$prefix" != "$outside" ] || policies=$prefix/share/dbus-1
    echo "systemd/onbeat.service $prefix/lib/systemd/system/onbeat.service"
    echo "systemd/onbeat-guard.service $prefix/lib/systemd/system/onbeat-guard.service"
    echo "dbus/org.onbeat.Manager1.conf $policies/system.d/org.onbeat.Manager1.conf"
    echo "dbus/org.onbeat.Manager1.service $prefix/share/dbus-1/system-services/org.onbeat.Manager1.service"
    echo "org.onbeat.onbeat.metainfo.xml $prefix/share/metainfo/org.onbeat.onbeat.metainfo.xml"
    echo "polkit/org.onbeat.policy $outside/share/polkit-1/actions/org.onbeat.policy"
    echo "onbeat.toml $prefix/share/doc/onbeat/onbeat.toml"
}
configuration=$image$etc/onbeat/onbeat.toml
rules() {
    for file in packaging/rules.d/*.toml; do
        echo "$file $prefix/share/onbeat/rules.d/$(basename "$file")"
    done
}

# The library's own makefile knows what belongs to it.
library() {
    make --no-print-directory -C libonbeat "$1" OUT="$(realpath -m "$target")/libonbeat" \
        PREFIX="$prefix" LIBDIR="${LIBDIR:-$prefix/lib}" DESTDIR="$image"
}

put() { # MODE SOURCE PLACE
    install -D -m "$1" "$2" "$3"
    echo "installed $3"
}

# A file that names the binary names the one of this prefix.
put_here() { # SOURCE PLACE
    install -d "$(dirname "$2")"
    sed "s|/usr/bin/onbeat|$prefix/bin/onbeat|" "$1" >"$2"
    chmod 644 "$2"
    echo "installed $2"
}

# What runs puts back what it changed.
end_service() {
    [ -z "$image" ] && [ "$service" = yes ] || return 0
    if command -v systemctl >/dev/null && systemctl cat onbeat.service >/dev/null 2>&1; then
        ! systemctl cat onbeat-node.service >/dev/null 2>&1 || systemctl disable --now onbeat-node.service
        systemctl disable --now onbeat.service
        systemctl stop onbeat-guard.service
    fi
    [ ! -x "$root/bin/onbeat" ] || "$root/bin/onbeat" restore --quiet ||
        echo "see above for what could not be put back; a restart does it" >&2
}

if [ "${1-}" = --remove ]; then
    end_service
    rm -fv "$root"/bin/onbeat "$root"/bin/onbeat-lab "$root"/bin/onbeat-node "$root"/share/man/man1/onbeat.1 "$root"/share/man/man1/onbeat-*.1 \
        "$root/share/man/man5/onbeat.toml.5" "$root/share/man/man8/onbeat-node.8"
    { completions onbeat && completions onbeat-lab && completions onbeat-node; } | while read -r _ place; do rm -fv "$image$place"; done
    if [ "$service" = yes ]; then
        { service_files && rules && echo "$node_unit"; } | while read -r _ place; do rm -fv "$image$place"; done
        rmdir --ignore-fail-on-non-empty "$root/share/onbeat/rules.d" "$root/share/onbeat" 2>/dev/null || true
        if cmp -s packaging/onbeat.toml "$configuration"; then
            rm -fv "$configuration"
            rmdir --ignore-fail-on-non-empty "$image$etc/onbeat/onbeat.d" "$image$etc/onbeat" 2>/dev/null || true
        elif [ -e "$configuration" ]; then
            echo "$configuration stays: it was changed"
        fi
    fi
    library uninstall
    exit 0
fi

if [ ! -x "$binary" ]; then
    scripts/setup.sh build
    PATH="$PATH:$HOME/.cargo/bin" cargo build --release --locked -p onbeat
fi

generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT
program() { # BINARY NAME
    local what page
    # Word splitting is meant: without an emulator there is none.
    # shellcheck disable=SC2086
    for what in man completions; do
        ${EMULATOR-} "$1" generate $what "$generated/$2/$what"
    done
    put 755 "$1" "$root/bin/$2"
    for page in "$generated/$2"/man/*; do
        put 644 "$page" "$root/share/man/man${page##*.}/$(basename "$page")"
    done
    completions "$2" | while read -r source place; do
        put 644 "$generated/$2/completions/$source" "$image$place"
    done
}
program "$binary" onbeat
[ -z "${NODE-}" ] || program "$NODE" onbeat-node
[ -z "${LAB-}" ] || program "$LAB" onbeat-lab
if [ "$service" = yes ]; then
    service_files | while read -r source place; do
        put_here "packaging/$source" "$image$place"
    done
    # Word splitting is meant: source and place.
    # shellcheck disable=SC2086
    [ -z "${NODE-}" ] || put_here packaging/${node_unit% *} "$image${node_unit#* }"
    rules | while read -r source place; do
        put 644 "$source" "$image$place"
    done
    install -d "$image$etc/onbeat/onbeat.d"
    if [ -e "$configuration" ]; then
        echo "$configuration stays as it is"
    else
        put 644 packaging/onbeat.toml "$configuration"
    fi
else
    echo "without the service: $prefix is not where the system looks for it; SERVICE=yes installs it"
fi
library install
