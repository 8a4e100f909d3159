# Starts bin/repute or bin/demo for other scripts, which read this file by ".": start and start_demo set base,
# its URL, and token; start_demo also rpc, the URL of its chain. What is started ends with the script.
work=$(mktemp -d)
server=

# start runs repute with arguments until it listens.
start() {
  ./bin/repute "$@" >"$work/out" 2>"$work/log" &
  server=$!
  await "$work/log" 'msg=listening address='
  base=http://$(sed -n 's/.*msg=listening address=\([^ ]*\).*/\1/p' "$work/log" | head -n 1)
}

# start_demo runs a demo until a task was done and one rejected, so that there is something to ask about.
start_demo() {
  ./bin/demo --all-roles --listen 127.0.0.1:0 >"$work/out" 2>"$work/log" &
  server=$!
  await "$work/out" ': rejected\.$'
  base=$(sed -n 's|^  start here  \(http://.*\)/$|\1|p' "$work/out")
  token=$(sed -n 's/^  own         \([A-Z0-9]*\) .*/\1/p' "$work/out")
  rpc=$(sed -n 's/^  devnet RPC  \([^ ]*\) .*/\1/p' "$work/out")
  [ -n "$token" ] || { echo "the demo prints no token of role own" >&2; exit 1; }
}

# await waits until a line of a file has a pattern.
await() {
  for _ in $(seq 480); do
    grep -q "$2" "$1" 2>/dev/null && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.25
  done
  cat "$work/log" >&2
  exit 1
}

stop() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" || true; }
  server=
}
trap 'stop; rm -rf "$work" "${data:-$work}"' EXIT
