#!/usr/bin/env bash
# Makes web/static/vendor again from npm: the minified files that the dashboard ships, each with its licence, and checks
# their hashes. Another version of one is a change of this file.
set -euo pipefail
cd "$(dirname "$0")/.."
out=web/static/vendor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# take PACKAGE VERSION FILE LICENCE NAME SHA256: the file of the package becomes NAME, its licence NAME.LICENSE.
take() {
  local archive
  archive=$(cd "$work" && npm pack --silent "$1@$2")
  tar -xzf "$work/$archive" -C "$work"
  # A source map is nowhere to be had, so its comment would only make browsers ask for it.
  sed '/^\/\/# sourceMappingURL=/d' "$work/package/$3" >"$out/$5"
  cp "$work/package/$4" "$out/$5.LICENSE"
  rm -rf "$work/package"
  echo "$6  $out/$5" | sha256sum --check --quiet
}

mkdir -p "$out"
take htmx.org 4.0.1 dist/htmx.min.js LICENSE htmx.min.js \
  a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130
take uplot 1.6.32 dist/uPlot.iife.min.js LICENSE uPlot.min.js \
  19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f
take uplot 1.6.32 dist/uPlot.min.css LICENSE uPlot.min.css \
  df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04
take sigma 3.0.3 dist/sigma.min.js LICENSE.txt sigma.min.js \
  58e30383ab428f832068d9d16a5215c65ba12430d438ed091c5703f398de9e16
take graphology 0.26.0 dist/graphology.umd.min.js LICENSE.txt graphology.min.js \
  e65803eba4826a52a84ec3fedebda3e2434ff25d86b3e2309bfe6575141ab2ff
