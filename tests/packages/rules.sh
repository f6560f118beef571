#!/usr/bin/env bash
# Each shipped rule names a program as it is called where it runs: in Debian 13's archive there is a package with a program
# of this name, which is no script (a script runs under the name of its interpreter). Those that Debian lacks are listed in
# crates/onbeat/tests/daemon/known.rs, and must be lacking. The test there starts the programs that need no desktop.
#
# usage (as root): tests/packages/rules.sh
set -euo pipefail
here=$(dirname "$(realpath "$0")")

known=$here/../../crates/onbeat/tests/daemon/known.rs
lacking=$(sed -n '/^const LACKING/,/";$/p' "$known" | sed '1d; s/";$//; s/\\$//' | xargs)

[ "$(id -u)" -eq 0 ] || {
    echo "packages are fetched in a fresh Debian, as root"
    exit 77
}
tarball=$("$here/root.sh" trixie)
work=$(mktemp -d)
root=$work/root
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir "$root"
tar -C "$root" -xf "$tarball"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/fetched"
chroot "$root" apt-get update -qq
# shellcheck disable=SC2016 # apt-get fills these in, not the shell
archive=$(chroot "$root" apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
curl -sSf -o "$work/contents.gz" "${archive%/}/dists/trixie/main/Contents-$(dpkg --print-architecture).gz"

# Succeeds if the package has a program there, and not a script or a link.
is_program() { # PACKAGE PATH
    local deb
    (cd "$root/fetched" && [ -n "$(find . -name "$1_*.deb")" ]) ||
        chroot "$root" sh -c "cd /fetched && apt-get download -qq $1" >/dev/null 2>&1 </dev/null
    deb=$(find "$root/fetched" -name "$1_*.deb")
    dpkg-deb --fsys-tarfile "$deb" >"$work/tar"
    tar -xOf "$work/tar" "./$2" >"$work/program" 2>/dev/null && [ "$(head -c 4 "$work/program" | tail -c 3)" = ELF ]
}
failed=0
grep -h '^program' "$here"/../../packaging/rules.d/*.toml | sed 's/.*"\(.*\)"/\1/' >"$work/programs"
while read -r program; do
    found=
    while read -r path packages; do
        package=${packages%%,*}
        if is_program "${package##*/}" "$path"; then
            found="${package##*/} has /$path"
            break
        fi
    done < <(zcat "$work/contents.gz" | grep -E "^(usr/)?(bin|games|lib|libexec)/([^ ]*/)?${program//./\\.}[[:space:]]")
    is_listed=
    case " $lacking " in *" $program "*) is_listed=yes ;; esac
    echo "$program: ${found:-not in Debian}"
    if [ "${found:+yes}" = "$is_listed" ]; then
        echo "the rule for $program, or the list of what Debian lacks, is wrong"
        failed=1
    fi
done <"$work/programs"
[ "$(wc -l <"$work/programs")" -gt 50 ]
exit "$failed"
