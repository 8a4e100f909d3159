#!/usr/bin/env bash
# Generates requests from the OpenAPI document of a demo and sends them: no valid request may be
# rejected, no status may be undeclared, nothing may be 5xx, and every answer must fit its
# schema. schemathesis is kept in a cache: REPUTE_CACHE, or repute/openapi in the one of the
# user. SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/started.sh

version=schemathesis==4.32.5
cache=${REPUTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/repute/openapi}
if [ "$(cat "$cache/schemathesis" 2>/dev/null)" != "$version" ]; then
  mkdir -p "$cache"
  python3 -m venv "$cache/schemathesis-venv"
  "$cache/schemathesis-venv/bin/pip" install --quiet --disable-pip-version-check "$version" >&2
  echo "$version" >"$cache/schemathesis"
fi

scripts=$PWD/scripts
checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,valid_request_is_taken

start_demo
echo "== $base/openapi.json"
# It keeps files where it runs.
cd "$work" && SCHEMATHESIS_HOOKS=openapi_checks PYTHONPATH=$scripts PYTHONDONTWRITEBYTECODE=1 "$cache/schemathesis-venv/bin/schemathesis" \
  --config-file "$scripts/schemathesis.toml" run "$base/openapi.json" -H "Authorization: Bearer $token" --seed "${SEED:-1}" \
  --max-examples "${EXAMPLES:-25}" --checks "$checks"
