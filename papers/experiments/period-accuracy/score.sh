#!/usr/bin/env bash
# How often the default analyser is right on the recordings that it was not developed with.
set -euo pipefail
cd "$(dirname "$0")/../../.."

echo "the recordings in tests/traces/held-out and tests/traces/corpus/test, and made-up threads"
cargo run --quiet --release -p onbeat-infer --example score -- \
    tests/traces/held-out tests/traces/corpus/test |
    awk '/^$/ { blank++ } blank < 2 && !/^. (starved|[^|]*(of 6 jobs|whole))/'
