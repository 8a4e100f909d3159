#!/usr/bin/env bash
# Gives every fuzz target of the tree some time: scripts/fuzz.sh [DURATION]
# Inputs are made smaller for a second at most: with a database the covered code differs from run to run, and by default
# the search for a smaller input of the same cover takes a minute each time.
set -euo pipefail
for=${1:-10s}
ran=0
for package in $(go list ./...); do
  dir=$(go list -f '{{.Dir}}' "$package")
  grep -qs '^func Fuzz' "$dir"/*_test.go || continue
  for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz'); do
    echo "== $package $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$for" -fuzzminimizetime 1s "$package"
    ran=$((ran + 1))
  done
done
echo "$ran fuzz targets"
((ran > 0))
