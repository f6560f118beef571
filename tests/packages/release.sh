#!/usr/bin/env bash
# Makes what a release consists of from two clones in folders of other names, and compares it byte by byte. The list
# of what is built in has to name what Cargo.lock pins; and a version whose changes are not told is refused.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! cargo cyclonedx --help >/dev/null 2>&1; then
    echo "no cargo-cyclonedx here: scripts/setup.sh release installs it"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
for clone in one another; do
    git clone --quiet --no-hardlinks . "$work/$clone"
done

unreleased=$work/one
sed -i "0,/^## \[.*/s//## [Unreleased]\n\n- Not told before.\n/" "$unreleased/CHANGELOG.md"
if TARGET_DIR=$work/none "$unreleased/scripts/release.sh" >"$work/said" 2>&1; then
    echo "a release was made of changes without a version"
    exit 1
fi
grep -q "\[Unreleased\], Cargo.toml has $version" "$work/said"
git -C "$unreleased" checkout --quiet CHANGELOG.md

# As of the version, whether or not it is out.
for clone in one another; do
    cd "$work/$clone"
    sed -i "0,/^## \[.*/s//## [$version] - 2026-01-01/" CHANGELOG.md
    git -c user.name=nobody -c user.email=nobody@localhost -c commit.gpgsign=false commit --quiet --all \
        --allow-empty --date 2026-01-01T00:00:00Z --message "Release $version" --no-verify
done
git -C "$work/another" fetch --quiet "$work/one" HEAD
git -C "$work/another" reset --quiet --hard FETCH_HEAD
for clone in one another; do
    TARGET_DIR=$work/$clone.made "$work/$clone/scripts/release.sh" >"$work/said" 2>&1 || {
        cat "$work/said"
        exit 1
    }
    # The next one is made in another second.
    sleep 1.1
done
diff -r "$work/one.made" "$work/another.made"
made=$work/one.made/release-$version
(cd "$made" && sha256sum --check --quiet SHA256SUMS)
if sed 's|file:///usr/src/onbeat||g' "$made"/*.json | grep 'file:///'; then
    echo 'it tells a folder of this machine'
    exit 1
fi
python3 - "$made/onbeat-$version.cdx.json" <<'PYTHON'
import json, re, sys
bom = json.load(open(sys.argv[1]))
assert bom["bomFormat"] == "CycloneDX", bom["bomFormat"]
assert bom["metadata"]["component"]["name"] == "onbeat", bom["metadata"]["component"]
pinned = set(re.findall(r'name = "(.*)"\nversion = "(.*)"', open("Cargo.lock").read()))
listed = {(c["name"], c["version"]) for c in bom["components"]}
strangers = listed - pinned
assert not strangers, strangers
missing = {"libbpf-sys", "zbus", "clap", "onbeat-decide", "onbeat-sense"} - {name for name, _ in listed}
assert not missing, missing
PYTHON
