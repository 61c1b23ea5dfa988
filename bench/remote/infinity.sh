#!/usr/bin/env bash
# Tests the remote encoder against a real embeddings server: infinity-emb, from
# PyPI, with all-MiniLM-L6-v2.
#
#   DREAMGUARD_MINILM=models/minilm bench/remote/infinity.sh VENV
#
# VENV is the folder of a Python environment, made if it is not there: Python 3.11,
# some 6 GB with torch. TORCH_SITE=DIR takes torch from the site-packages of another
# environment instead.
set -euo pipefail
if (($# != 1)) || [[ -z ${DREAMGUARD_MINILM:-} ]]; then
	sed -n '2,9s/^# \{0,1\}//p' "$0"
	exit 2
fi
venv=$1
port=${PORT:-7997}
here=$(cd "$(dirname "$0")" && pwd)
if [[ ! -x $venv/bin/infinity_emb ]]; then
	"${PYTHON:-python3.11}" -m venv "$venv"
	if [[ -n ${TORCH_SITE:-} ]]; then
		echo "$TORCH_SITE" >"$venv/lib/python3.11/site-packages/zz-torch.pth"
	else
		"$venv/bin/pip" install --quiet --disable-pip-version-check torch==2.15.0
	fi
	"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt"
fi

log=$(mktemp)
HF_HUB_OFFLINE=1 DO_NOT_TRACK=1 INFINITY_ANONYMOUS_USAGE_STATS=0 "$venv/bin/infinity_emb" v2 \
	--model-id "$DREAMGUARD_MINILM" --served-model-name minilm --engine torch --device cpu --no-bettertransformer \
	--host 127.0.0.1 --port "$port" --url-prefix /v1 >"$log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; rm -f "$log"' EXIT
for _ in $(seq 120); do
	if ! kill -0 $server 2>/dev/null; then
		cat "$log"
		exit 1
	fi
	if curl --silent --fail "http://127.0.0.1:$port/v1/models" >/dev/null; then break; fi
	sleep 1
done
cd "$here/../.."
DREAMGUARD_EMBEDDINGS="http://127.0.0.1:$port/v1 minilm" go test -count=1 -v -run '^TestRealServer$' ./embed/remote
