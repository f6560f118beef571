#!/usr/bin/env bash
# Installs the binary, its man pages and its completions, and libonbeat with its own, under $DESTDIR$PREFIX;
# --remove takes them away again. Says each file of the binary.
set -euo pipefail
cd "$(dirname "$0")/.."

root=${DESTDIR-}${PREFIX:-/usr/local}
binary=${TARGET_DIR:-target}/release/onbeat

# What is installed where: SOURCE in a folder of generated files, then its place below the root.
completions() {
    echo "onbeat.bash share/bash-completion/completions/onbeat"
    echo "_onbeat share/zsh/site-functions/_onbeat"
    echo "onbeat.fish share/fish/vendor_completions.d/onbeat.fish"
}

# The library's own makefile knows what belongs to it.
library() {
    make --no-print-directory -C libonbeat "$1" OUT="$(realpath -m "${TARGET_DIR:-target}")/libonbeat" \
        PREFIX="${PREFIX:-/usr/local}" DESTDIR="${DESTDIR-}"
}

put() {
    install -D -m "$1" "$2" "$3"
    echo "installed $3"
}

if [ "${1-}" = --remove ]; then
    rm -fv "$root/bin/onbeat" "$root"/share/man/man1/onbeat.1 "$root"/share/man/man1/onbeat-*.1
    completions | while read -r _ place; do rm -fv "$root/$place"; done
    library uninstall
    exit 0
fi

if [ ! -x "$binary" ]; then
    scripts/setup.sh build
    PATH="$PATH:$HOME/.cargo/bin" cargo build --release -p onbeat
fi

generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT
"$binary" generate man "$generated/man"
"$binary" generate completions "$generated/completions"

put 755 "$binary" "$root/bin/onbeat"
for page in "$generated"/man/*.1; do
    put 644 "$page" "$root/share/man/man1/$(basename "$page")"
done
completions | while read -r source place; do
    put 644 "$generated/completions/$source" "$root/$place"
done
library install
