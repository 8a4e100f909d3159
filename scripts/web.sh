#!/usr/bin/env bash
# Has a browser look at the dashboard of a demo: every page in both themes and two widths, by keyboard and without
# JavaScript, with axe; and draws the screenshots of the documentation with --screenshots. The packages of npm are kept
# in a cache: REPUTE_CACHE, or repute/web in the one of the user. With --base URL it looks at a server that runs.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/started.sh

cache=${REPUTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/repute/web}
wanted="$(cat scripts/web/package-lock.json) $(node --version)"
mkdir -p "$cache"
if [ "$(cat "$cache/done" 2>/dev/null)" != "$wanted" ]; then
  cp scripts/web/package.json scripts/web/package-lock.json "$cache/"
  npm ci --prefix "$cache" --no-audit --no-fund --ignore-scripts --loglevel=error >&2
  echo "$wanted" >"$cache/done"
fi
cp scripts/web/*.mjs "$cache/" # where their imports are

base= screenshots=
while [ $# -gt 0 ]; do
  case $1 in
    --base) base=$2 && shift 2 ;;
    --screenshots) screenshots=$PWD/docs/images && shift ;;
    *) echo "web: unknown argument $1" >&2 && exit 2 ;;
  esac
done
[ -n "$base" ] || start_demo
chromium=$(command -v chromium || command -v chromium-browser)
WEB_TOKEN=${token:-} WEB_RPC=${rpc:-} node "$cache/pages.mjs" "${base%/}" "$chromium" "$screenshots"
