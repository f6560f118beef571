#!/usr/bin/env bash
# What is checked out is called by its version if the changelog has nothing above that, and else sorts before the one that
# is to come, or after the one that is out.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/scripts"
cp scripts/version.sh "$work/scripts"
printf '[workspace.package]\nversion = "0.2.0"\n' >"$work/Cargo.toml"
git -C "$work" init --quiet
git -C "$work" -c user.name=nobody -c user.email=nobody@localhost -c commit.gpgsign=false commit --quiet --allow-empty --message one

says() { # PATTERN CHANGELOG
    # shellcheck disable=SC2059 # it has line breaks to be made
    printf "$2" >"$work/CHANGELOG.md"
    local said
    said=$("$work/scripts/version.sh")
    [[ $said =~ ^$1$ ]] || {
        echo "$said where $1 belongs: $2"
        exit 1
    }
    # What has more behind the version is no release.
    if [ "$said" = 0.2.0 ]; then
        "$work/scripts/version.sh" --released >/dev/null
    elif "$work/scripts/version.sh" --released 2>/dev/null; then
        echo "released, with $2"
        exit 1
    fi
}
commit='git[0-9]{12}\.[0-9a-f]{8}'
says '0\.2\.0' '# Changelog\n\n## [0.2.0] - 2026-01-01\n\n- One.\n'
says '0\.2\.0' '## [Unreleased]\n\n## [0.2.0] - 2026-01-01\n\n- One.\n'
says "0\\.2\\.0~$commit" '## [Unreleased]\n\n- One.\n'
says "0\\.2\\.0~$commit" '## [Unreleased]\n\n- One.\n\n## [0.1.0] - 2026-01-01\n'
says "0\\.2\\.0~$commit" '## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- One.\n'
says "0\\.2\\.0\\+$commit" '## [Unreleased]\n\n- Two.\n\n## [0.2.0] - 2026-01-01\n\n- One.\n'

# Files that are used alone have the version, too: the Python package, and those of Kubernetes.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
has() { # FILE LINE TIMES
    [ "$(grep -cxF -- "$2" "$1")" = "$3" ] || {
        echo "$1 has not the version of Cargo.toml: '$2' belongs there, $3 times"
        exit 1
    }
}
has python/pyproject.toml "version = \"$version\"" 1
has packaging/kubernetes/chart/Chart.yaml "version: $version" 1
has packaging/kubernetes/chart/Chart.yaml "appVersion: \"$version\"" 1
has packaging/kubernetes/chart/values.yaml "image: registry.example/onbeat:$version" 1
has packaging/kubernetes/daemonset.yaml "          image: registry.example/onbeat:$version" 2
