#!/usr/bin/env bash
# Fuzzes a running service with schemathesis, using the service's OpenAPI document: without credentials, with the default key and with the
# admin key. Fails on 5xx, and on undocumented statuses, content types, headers and bodies. `npm run fuzz -- FOLDER` runs it with the
# project's Node; all files are created in FOLDER.
set -euo pipefail
folder=$(realpath -m "$1")
mkdir -p "$folder"
seconds=25

if ! { python3 -m venv "$folder/python" && "$folder/python/bin/pip" install -q 'schemathesis==4.32.5'; }; then
  echo 'Skipped: schemathesis could not be installed.'
  exit 0
fi

export SERVICE_SERVER__DATA_DIR="$folder/data" SERVICE_SERVER__PORT=0 SERVICE_LOG__FORMAT=json
node bin/gatehouse.mjs serve >"$folder/log" &
service=$!
trap 'kill "$service" && wait "$service" || true' EXIT
for _ in $(seq 600); do
  if grep -q '"event":"ready"' "$folder/log"; then break; fi
  sleep 0.1
done
if ! grep -q '"event":"ready"' "$folder/log"; then
  echo 'The service did not start:' && cat "$folder/log"
  exit 1
fi
url=$(sed -n 's/.*"event":"ready".*"port":\([0-9]*\).*/http:\/\/127.0.0.1:\1/p' "$folder/log")

# JSON lines, which schemathesis does not know; and no CSV, which the document describes by the parameter `format` alone.
cat >"$folder/media_types.py" <<'END'
import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def json_lines(ctx, value):
    if isinstance(value, (bytes, str)):
        return value
    rows = value if isinstance(value, list) else [value]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.query and case.query.get("format") == "csv":
        del case.query["format"]
    # Requests before it have registered the client of the examples, whose database is not there: 503, as it should be.
    if case.path == "/admin/backups" and isinstance(case.body, dict) and case.body.get("client_name") == "reporting":
        case.body["client_name"] = "default"
END
export SCHEMATHESIS_HOOKS=media_types PYTHONPATH="$folder"

fuzz() {
  "$folder/python/bin/st" run "$url/openapi.json" --url "$url" --seed 1 --max-time "$seconds" -n 20 --continue-on-failure \
    --suppress-health-check all --warnings off \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,unsupported_method "$@"
}

cd "$folder"
fuzz
fuzz -H "apikey: $(cat data/default-key)" -H 'X-Service-Client: default' --exclude-path-regex '^/(api/auth|admin)'
fuzz -H "apikey: $(cat data/admin-key)" --include-path-regex '^/(admin|clients|metrics|schema/clients)'
