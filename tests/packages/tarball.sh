#!/usr/bin/env bash
# Makes the source tarball from two clones, made at other times under another umask and another user's
# configuration, and compares them byte by byte. It has to hold what is committed, all of it.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! git rev-parse --quiet --verify HEAD >/dev/null; then
    echo "this is no git checkout"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --no-hardlinks . "$work/first"
(umask 077 && git clone --quiet --no-hardlinks . "$work/second")
printf '[tar]\n\tumask = 0077\n[core]\n\tautocrlf = true\n' >"$work/gitconfig"
one=$("$work/first/scripts/source.sh" "$work/one")
# gzip keeps a second's fraction of nothing; what it would keep is seconds.
sleep 1.1
two=$(umask 077 && GIT_CONFIG_GLOBAL=$work/gitconfig TZ=Asia/Tokyo LC_ALL=C "$work/second/scripts/source.sh" "$work/two")
[ "$(basename "$one")" = "$(basename "$two")" ] || {
    echo "two names: $one, $two"
    exit 1
}
cmp "$one" "$two"
tar -tzf "$one" | grep -v '/$' | sed 's|^[^/]*/||' | sort >"$work/holds"
git ls-files | sort | diff - "$work/holds"
