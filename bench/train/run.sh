#!/bin/sh
# Measures training steps of ours beside equivalent ones in PyTorch, one after the other
# and several times over, on this machine.
#
#   bench/train/run.sh [ROUNDS]
#
# PYTHON names an interpreter with torch. XLA takes part where PJRT_PLUGIN_LIBRARY_PATH names a
# plugin (scripts/xla-cpu.sh) and there is a C compiler. PRESETS="paper protocol-p1" says
# which sizes. Every line of a round is one process; docs/benchmarks.md has medians.
set -eu

rounds=${1:-3}
cd "$(dirname "$0")/../.."
out=build/train
mkdir -p $out
if GOEXPERIMENT=simd go list simd/archsimd >/dev/null 2>&1; then
	export GOEXPERIMENT=simd
fi
tags=
if [ -n "${PJRT_PLUGIN_LIBRARY_PATH:-}" ]; then
	export CGO_ENABLED=1
	tags=xla
fi
go test -c -tags "$tags" -o $out/bench ./train
for round in $(seq "$rounds"); do
	for preset in ${PRESETS:-paper protocol-p1}; do
		for stage in 1 2; do
			echo "round $round"
			for backend in go xla:cpu; do
				(cd train && ../$out/bench -test.run '^$' -test.bench "Step/$preset/$backend/stage$stage" -test.benchtime 5s) | grep '^Benchmark' || true
			done
			for mode in eager compile; do
				"${PYTHON:-python3}" bench/train/step.py --preset "$preset" --stage "$stage" --mode $mode --seconds 5
			done
		done
	done
done
