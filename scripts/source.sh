#!/usr/bin/env bash
# Makes the source tarball of the commit that is checked out, the same bytes wherever and whenever it is made, and
# prints its path.
#
# usage: scripts/source.sh FOLDER [VERSION]
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1
version=${2:-$(scripts/version.sh)}
if ! git rev-parse --quiet --verify HEAD >/dev/null 2>&1; then
    echo "the tarball is made of a commit, and this is no git checkout" >&2
    exit 1
fi
if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
    echo "what is not committed is not in it" >&2
fi
mkdir -p "$folder"
tarball=$folder/onbeat-$version.tar.gz
# Neither the modes nor the attributes that this user's configuration asks for.
git -c tar.umask=0022 -c core.attributesFile=/dev/null -c core.autocrlf=false \
    archive --format=tar --prefix="onbeat-$version/" HEAD | gzip -9n >"$tarball"
echo "$tarball"
