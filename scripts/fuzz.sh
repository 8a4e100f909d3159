#!/usr/bin/env bash
# Gives every fuzz target of the tree some time: scripts/fuzz.sh [DURATION]
set -euo pipefail
for=${1:-10s}
ran=0
for package in $(go list ./...); do
  dir=$(go list -f '{{.Dir}}' "$package")
  grep -qs '^func Fuzz' "$dir"/*_test.go || continue
  for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz'); do
    echo "== $package $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$for" "$package"
    ran=$((ran + 1))
  done
done
echo "$ran fuzz targets"
((ran > 0))
