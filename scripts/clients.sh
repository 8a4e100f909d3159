#!/usr/bin/env bash
# Makes the types of the clients from docs/reference/openapi.json, tests the clients, and uses them against a demo,
# also as guards of x402 clients of npm and PyPI. What code generators make of schema.graphql must compile. The packages
# are kept in a cache: REPUTE_CACHE, or repute/clients in the one of the user.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/started.sh

generator=datamodel-code-generator==0.35.0
tools='mypy==1.18.2 x402[evm,httpx]==2.25.0'
cache=${REPUTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/repute/clients}
wanted="$generator $tools $(cat clients/python/pyproject.toml scripts/clients/package.json)"
mkdir -p "$cache"
if [ "$(cat "$cache/done" 2>/dev/null)" != "$wanted" ]; then
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check "$generator" $tools 'eth-account>=0.13.6,<0.14' >&2 # words
  cp scripts/clients/package.json "$cache/"
  npm install --prefix "$cache" --no-audit --no-fund --ignore-scripts --loglevel=error >&2
  echo "$wanted" >"$cache/done"
fi

"$cache/venv/bin/datamodel-codegen" --input docs/reference/openapi.json --input-file-type openapi \
  --output-model-type typing.TypedDict --target-python-version 3.10 --use-standard-collections --use-union-operator \
  --disable-timestamp --enum-field-as-literal all --output clients/python/repute_client/openapi.py
(
  cd clients/python
  export PYTHONDONTWRITEBYTECODE=1
  "$cache/venv/bin/mypy" --cache-dir "$cache/mypy" repute_client tests
  "$cache/venv/bin/python" -m unittest discover tests
)
(
  cd clients/typescript
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  npm run --silent generate >&2
  npm test --silent
)

# Where their imports are.
mkdir -p "$cache/use"
cp scripts/clients/* schema.graphql "$cache/use/"
(
  cd "$cache/use"
  sed -i 's|../../schema.graphql|schema.graphql|' codegen.json
  npx --prefix .. graphql-codegen --config codegen.json --silent
  npx --prefix .. tsc --noEmit --strict --skipLibCheck --module nodenext --target es2022 use.ts
)

start_demo
node "$cache/use/demo.mjs" "$PWD/clients/typescript/dist/index.js" "$base"
PYTHONPATH=clients/python "$cache/venv/bin/python" scripts/clients/demo.py "$base"
