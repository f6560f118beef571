#!/usr/bin/env bash
# Installs into a folder and compares what is there with the list, for the prefix of a distribution, of a machine and
# of a user; then removes it again. ONBEAT is the binary, if not the one that cargo has built last.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=$(realpath -m "${TARGET_DIR:-target}")
export ONBEAT=${ONBEAT:-$target/debug/onbeat} TARGET_DIR=$work/build
[ -x "$ONBEAT" ] || {
    echo "$ONBEAT is not built"
    exit 1
}

files() { (cd "$work/image" && find . ! -type d | sed 's|^\.||' | sort); }

# What belongs to it below a prefix, and outside of it; commands and pages are as many as there are.
expected() { # PREFIX POLICIES SERVICE [OUTSIDE]
    for command in '' $("$ONBEAT" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/-\1/p'); do
        [ "$command" = -help ] || echo "$1/share/man/man1/onbeat$command.1"
    done
    echo "$1/share/man/man5/onbeat.toml.5"
    echo "$1/bin/onbeat"
    echo "$1/share/bash-completion/completions/onbeat"
    echo "$1/share/zsh/site-functions/_onbeat"
    echo "$1/share/fish/vendor_completions.d/onbeat.fish"
    for file in libonbeat.a libonbeat.so libonbeat.so.0 pkgconfig/onbeat.pc; do echo "$1/lib/$file"; done
    (cd libonbeat/include && find onbeat -name '*.h' -o -name '*.hpp') | sed "s|^|$1/include/|"
    (cd libonbeat/man && ls) | sed "s|.*\(.\)$|$1/share/man/man\1/&|"
    if [ "$3" = yes ]; then
        echo "$1/lib/systemd/system/onbeat.service"
        echo "$1/lib/systemd/system/onbeat-guard.service"
        echo "$2/system.d/org.onbeat.Manager1.conf"
        echo "$1/share/dbus-1/system-services/org.onbeat.Manager1.service"
        echo "${4-/usr}/share/polkit-1/actions/org.onbeat.policy"
        echo "$1/share/metainfo/org.onbeat.onbeat.metainfo.xml"
        echo "$1/share/doc/onbeat/onbeat.toml"
        (cd packaging && ls rules.d/*.toml) | sed "s|^|$1/share/onbeat/|"
        echo "${4-}/etc/onbeat/onbeat.toml"
    fi
}

try() { # PREFIX POLICIES SERVICE [OUTSIDE]
    export PREFIX=$1 DESTDIR=$work/image
    rm -rf "$work/image"
    scripts/install.sh >/dev/null
    expected "$@" | sort | diff - <(files)
    if [ "$3" = yes ]; then
        grep -q "^ExecStart=$1/bin/onbeat daemon --hand-over$" "$work/image$1/lib/systemd/system/onbeat.service"
        grep -q "^ExecStop=$1/bin/onbeat restore --quiet$" "$work/image$1/lib/systemd/system/onbeat-guard.service"
    fi
    # What the administrator wrote is his.
    if [ "$3" = yes ]; then
        echo '# by hand' >>"$work/image${4-}/etc/onbeat/onbeat.toml"
        scripts/install.sh >/dev/null
        grep -q 'by hand' "$work/image${4-}/etc/onbeat/onbeat.toml"
        scripts/install.sh --remove >/dev/null
        echo "${4-}/etc/onbeat/onbeat.toml" | diff - <(files)
        rm "$work/image${4-}/etc/onbeat/onbeat.toml"
        scripts/install.sh >/dev/null
    fi
    scripts/install.sh --remove >/dev/null
    diff /dev/null <(files)
}

try /usr /usr/share/dbus-1 yes
try /usr/local /etc/dbus-1 yes
try /home/alice/.local - no
SERVICE=prefix try /nix/store/onbeat /nix/store/onbeat/share/dbus-1 yes /nix/store/onbeat
