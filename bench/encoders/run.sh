#!/bin/sh
# Measures our encoders beside ONNX Runtime and PyTorch; options go to run.py.
#
#   bench/encoders/run.sh MINILM_FOLDER [OPTION...]
#
# PYTHON names an interpreter with torch, transformers, tokenizers, onnx,
# onnxscript and onnxruntime (versions in docs/benchmarks.md). XLA takes part where
# PJRT_PLUGIN_LIBRARY_PATH names a plugin (scripts/xla-cpu.sh) and there is a C
# compiler, the static encoder where checkpoints/shipped has its table.
set -eu

if [ $# -lt 1 ] || [ "${1#-}" != "$1" ]; then
	sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p;}' "$0" >&2
	exit 2
fi
model=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
out=build/encoders
mkdir -p $out
if GOEXPERIMENT=simd go list simd/archsimd >/dev/null 2>&1; then
	export GOEXPERIMENT=simd
fi
go build -o $out/go ./bench/encoders
set -- --model "$model" --go $out/go "$@"
if [ -n "${PJRT_PLUGIN_LIBRARY_PATH:-}" ]; then
	CGO_ENABLED=1 go build -tags xla -o $out/xla ./bench/encoders
	set -- "$@" --xla $out/xla
fi
if [ -f checkpoints/shipped/encoder.safetensors ]; then
	set -- "$@" --static checkpoints/shipped
fi
exec "${PYTHON:-python3}" bench/encoders/run.py "$@"
