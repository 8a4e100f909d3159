#!/usr/bin/env bash
# Has the SDK of agent0 (npm) ask the subgraph of an index in a test, then write to the devnet of a demo and read all of it
# back, and has the SDK in Python (PyPI) read the same. The packages are kept in a cache: REPUTE_CACHE, or repute/sdk in the one of the user.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/started.sh

cache=${REPUTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/repute/sdk}
python_sdk=agent0-sdk==1.7.1
wanted="$(cat scripts/sdk/package.json) $python_sdk"
mkdir -p "$cache"
cp scripts/sdk/*.mjs "$cache/" # where their imports are
if [ "$(cat "$cache/done" 2>/dev/null)" != "$wanted" ]; then
  cp scripts/sdk/package.json "$cache/"
  npm install --prefix "$cache" --no-audit --no-fund --ignore-scripts --loglevel=error >&2
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check "$python_sdk" >&2
  echo "$wanted" >"$cache/done"
fi
REPUTE_AGENT0_SDK=$cache ${GO:-go} test -count=1 -timeout 10m -v -run 'SDKOfAgent0' ./api/subgraph

start_demo
faucet=$(sed -n 's/^  faucet .*, key \(0x[0-9a-f]*\)$/\1/p' "$work/out")
node "$cache/devnet.mjs" "$base" "$rpc" "$faucet" >"$work/story.json"
"$cache/venv/bin/python" scripts/sdk/story.py <"$work/story.json"
