#!/usr/bin/env bash
# Makes what a release consists of, in $TARGET_DIR/release-VERSION: the source tarball, the list of all that is built
# into the binary (SBOM, CycloneDX), and their checksums. The same commit gives the same bytes.
#
# usage: scripts/release.sh [--snapshot]    # --snapshot: of a commit that is no release
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1-}" in
--snapshot) version=$(scripts/version.sh) ;;
'') version=$(scripts/version.sh --released) ;;
*)
    echo "usage: scripts/release.sh [--snapshot]" >&2
    exit 2
    ;;
esac
if [ -n "$(git status --porcelain --untracked-files=no)" ] && [ "${1-}" != --snapshot ]; then
    echo "a release is made of a commit: commit what is changed, or take it back" >&2
    exit 1
fi

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
folder=$(realpath -m "${TARGET_DIR:-target}")/release-$version
rm -rf "$folder"
mkdir -p "$folder"
tarball=$(scripts/source.sh "$folder" "$version")

# The list is of what the tarball holds, not of what lies about here.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -C "$work" --strip-components=1 -xzf "$tarball"
(cd "$work/crates/onbeat" && cargo cyclonedx --quiet --format json --spec-version 1.5 --all \
    --target x86_64-unknown-linux-gnu --override-filename onbeat)
python3 - "$work" "$work/crates/onbeat/onbeat.json" "$folder/onbeat-$version.cdx.json" <<'PYTHON'
# What differs from one run to the next is made a function of the commit: the folder, the time and the serial number.
import datetime, json, os, sys, uuid
folder, made, place = sys.argv[1:]
text = open(made).read().replace("file://" + folder, "file:///usr/src/onbeat")
bom = json.loads(text)
when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
bom["metadata"]["timestamp"] = when.strftime("%Y-%m-%dT%H:%M:%SZ")
bom.pop("serialNumber", None)
name = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom, sort_keys=True))
bom["serialNumber"] = "urn:uuid:" + str(name)
with open(place, "w") as out:
    json.dump(bom, out, indent=1, sort_keys=True)
    out.write("\n")
PYTHON
(cd "$folder" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
ls -l "$folder"
