#!/usr/bin/env bash
# Has others read exports: DuckDB and ClickHouse (chDB, which is ClickHouse in a process), both from PyPI, read the files
# that a server makes and `repute export` downloads. The packages are kept in a cache: REPUTE_CACHE, or repute/export in
# the one of the user.
set -euo pipefail
cd "$(dirname "$0")/.."

pypi='duckdb==2.0.1 chdb==4.4.0'
cache=${REPUTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/repute}/export
mkdir -p "$cache"
cp scripts/export/*.py "$cache/"
if [ "$(cat "$cache/done" 2>/dev/null)" != "$pypi" ]; then
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check $pypi >&2 # its words are packages
  echo "$pypi" >"$cache/done"
fi
REPUTE_EXPORT_READERS=$cache ${GO:-go} test -count=1 -timeout 10m -v -run OfOthers ./cmd/repute/internal/bulk
