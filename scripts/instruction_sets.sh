#!/usr/bin/env bash
# Runs the numerical tests of the dev build once for each set of vector instructions that this processor has and oneDNN can be
# held to: their bounds follow from arithmetic, so they hold on every processor.
#   scripts/instruction_sets.sh [lowest|all]      (default: all)
set -euo pipefail
cd "$(dirname "$0")/.."

has() { grep -qw "$1" /proc/cpuinfo; }
sets=()
if has avx2; then sets+=(AVX2); fi
if has avx512bw; then sets+=(AVX512_CORE); fi
if has avx512_bf16; then sets+=(AVX512_CORE_BF16); fi
if has amx_bf16; then sets+=(AVX512_CORE_AMX); fi
[ ${#sets[@]} -gt 0 ] || { echo "this processor has none of the instruction sets: AVX2 is the least"; exit 77; }
[ "${1:-all}" = all ] || sets=("${sets[0]}")

for set in "${sets[@]}"; do
  echo "== oneDNN with $set"
  ONEDNN_MAX_CPU_ISA=$set ctest --preset dev -j"$(nproc)" -R '^(kernels|model|trainer)\.'
done
