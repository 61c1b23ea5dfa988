#!/usr/bin/env bash
# Trains and measures protocol P1 with several encoders and seeds, and prints how
# well each model ranks the runs of the sets that are not locked.
#
#   bench/encoders/quality.sh DATA MINILM_FOLDER [OUT]
#
# DATA is the folder of the trajectories (docs/reference/data.md), OUT the folder of
# the runs, runs/quality without one. What is there already is not done again.
#
#   ENCODERS="hash static minilm"          which
#   SEEDS="20260701 20260702 20260703"     of simulation, training and draws
#   CONFIG=protocol-p1                     preset
#   BACKEND=go                             what MiniLM is computed on: xla:cpu is faster (scripts/xla-cpu.sh)
#
# Models train on the Go backend whatever MiniLM is computed on. MiniLM takes an
# hour or so of two cores once; its vectors are shared by the seeds.
set -euo pipefail
if (($# < 2)); then
	sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p;}' "$0" >&2
	exit 2
fi
data=$(cd "$1" && pwd)
minilm=$(cd "$2" && pwd)
out=${3:-runs/quality}
config=${CONFIG:-protocol-p1}
read -ra encoders <<<"${ENCODERS:-hash static minilm}"
read -ra seeds <<<"${SEEDS:-20260701 20260702 20260703}"
backend=${BACKEND:-go}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out" "$root/build/encoders"

tags=()
if [[ $backend == xla:* ]]; then
	export CGO_ENABLED=1
	tags=(-tags xla)
fi
if GOEXPERIMENT=simd go list simd/archsimd >/dev/null 2>&1; then
	export GOEXPERIMENT=simd
fi
bin=$root/build/encoders/dreamguard
(cd "$root" && go build "${tags[@]}" -o "$bin" ./cmd/dreamguard)

# vectors DIR ENCODER: MiniLM's vectors of everything the run will read. Only the
# sets that are not locked: the others are not measured here.
vectors() {
	local dir=$1 first=$out/minilm-${seeds[0]} files=()
	shift
	if [[ $dir == "$first" ]]; then
		for set in train validation tuning conformal test-agentdyn test-simulator test-tau-bench dev-asb; do
			if [[ -f $dir/data/$set.jsonl.gz ]]; then files+=("$dir/data/$set.jsonl.gz"); fi
		done
		"$bin" embed -q --config "$config" "$@" --backend "$backend" --out "$out/minilm-vectors" "${files[@]}"
		"$bin" embed -q --run "$dir" --backend "$backend" --from "$out/minilm-vectors"
	else
		"$bin" embed -q --run "$dir" --backend "$backend" --from "$first/embed" # simulated runs are of the seed
	fi
}

for encoder in "${encoders[@]}"; do
	case $encoder in
	hash) set -- --set encoder.kind=hash --set encoder.dims=256 ;;
	static) set -- --set encoder.kind=static --set encoder.dims=256 ;;
	minilm) set -- --set encoder.kind=transformer --set encoder.dims=0 --set "encoder.path=$minilm" ;;
	*)
		echo "quality.sh: ENCODERS has $encoder: want hash, static or minilm" >&2
		exit 2
		;;
	esac
	for seed in "${seeds[@]}"; do
		dir=$out/$encoder-$seed
		if [[ $encoder == minilm && ! -f $dir/eval/report.json ]]; then
			"$bin" run -q --config "$config" --data "$data" --out "$dir" --until data --set "seed=$seed" "$@" >&2
			vectors "$dir" "$@" >&2
		fi
		"$bin" run -q --config "$config" --data "$data" --out "$dir" --backend go --set "seed=$seed" "$@" >"$out/$encoder-$seed.log"
		echo "$encoder, seed $seed: done" >&2
	done
done

python3 - "$out" "${encoders[*]}" "${seeds[*]}" <<'PY'
import json, statistics, sys

out, encoders, seeds = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
reports = {(e, s): {x["name"]: x for x in json.load(open(f"{out}/{e}-{s}/eval/report.json"))["sets"]} for e in encoders for s in seeds}
names = [n for n, x in reports[encoders[0], seeds[0]].items()
         if n in ("agentdyn", "simulator", "asb-dev") and x.get("auroc") is not None]
print("AUROC (recall at 5 % false positives), mean over seeds and, of the AUROC, lowest to highest")
print("| encoder | " + " | ".join(names) + " |\n|" + " --- |" * (len(names) + 1))
for e in encoders:
    cells = []
    for n in names:
        a = [reports[e, s][n]["auroc"] for s in seeds]
        r = [reports[e, s][n]["recall_at_fpr"]["0.05"] for s in seeds]
        cells.append(f"{statistics.mean(a):.3f} ({statistics.mean(r):.3f}) {min(a):.3f}-{max(a):.3f}")
    print(f"| {e} | " + " | ".join(cells) + " |")
PY
