#!/usr/bin/env bash
# Has others judge the exports of OAF agents, and serve tools to such agents: the reference validator of skills, Deep
# Agents and Letta's schema (PyPI); Claude Code, which lists what it loaded before it asks a model, Goose, which
# validates and runs recipes, and MCP servers (npm). Nothing needs an account: the model's address is closed, or a
# scripted model is behind it. The packages are kept in a cache: REPUTE_CACHE, or repute/oaf in the one of the user.
set -euo pipefail
cd "$(dirname "$0")/.."

pypi='skills_ref==0.1.1 deepagents==0.7.32 pyyaml==6.0.4'
letta='letta==0.16.8 asyncpg==0.32.0' # later ones of this name are another program
uv=0.13.9                             # pip fails to resolve letta
cache=${REPUTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/repute}/oaf
wanted="$(cat scripts/oaf/package.json) $pypi $letta $uv"
mkdir -p "$cache"
cp scripts/oaf/*.py "$cache/"
if [ "$(cat "$cache/done" 2>/dev/null)" != "$wanted" ]; then
  cp scripts/oaf/package.json "$cache/"
  npm install --prefix "$cache" --no-audit --no-fund --loglevel=error >&2 # its script links the program
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check $pypi "uv==$uv" >&2 # its words are packages
  python3 -m venv "$cache/letta"
  "$cache/venv/bin/uv" pip install --quiet --python "$cache/letta/bin/python" $letta >&2
  echo "$wanted" >"$cache/done"
fi
REPUTE_OAF_REFEREES=$cache ${GO:-go} test -count=1 -timeout 10m -v -run 'OfOthers' ./manifest/oaf/harness
REPUTE_TEST_MCP=$cache ${GO:-go} test -count=1 -timeout 5m -v -run TestPublishedServers ./agent/llm/oafagent
