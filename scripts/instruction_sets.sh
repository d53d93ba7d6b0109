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
left_out=none
if [ "${1:-all}" = lowest ] && [ ${#sets[@]} = 1 ]; then
  echo "skipped: $(basename "$0") lowest, as this processor has no instructions beyond ${sets[0]}, which all tests ran with"
  exit 0
elif [ "${1:-all}" = lowest ]; then  # of the models' trainings, and of other long tests, an eighth
  sets=("${sets[0]}")
  left_out='\.(slow|every_model)\.[1-9]'
fi

for set in "${sets[@]}"; do
  echo "== oneDNN with $set"
  ONEDNN_MAX_CPU_ISA=$set ctest --preset dev -j"$(nproc)" -R '^(kernels|model|runtime|trainer)\.' -E "$left_out"
done
[ ${#sets[@]} -gt 1 ] || exit 0

# A processor may have sets that this one lacks. Bounds that leave it room are three times as wide as what the sets at hand
# differ by.
echo "== how far a training in bf16 is from one in f32, in parts of what is allowed"
results=build/dev/instruction_sets
rm -rf "$results"
for set in "${sets[@]}"; do
  ONEDNN_MAX_CPU_ISA=$set build/dev/bin/test_runtime --gtest_filter='*SameTrainingInBf16*' --gtest_brief=1 --gtest_output="xml:$results/$set.xml"
done
cat "$results"/*.xml | awk '
  match($0, /<testcase name="[^"]*"/) { test = substr($0, RSTART + 16, RLENGTH - 17) }
  match($0, /<property name="deviations" value="[^"]*"/) {
    count = split(substr($0, RSTART + 35, RLENGTH - 36), deviation, " ")
    ++runs
    for (i = 1; i <= count; ++i) {
      key = test " " i
      if (!(key in low) || deviation[i] < low[key]) low[key] = deviation[i]
      if (!(key in high) || deviation[i] > high[key]) high[key] = deviation[i]
      size = deviation[i] < 0 ? -deviation[i] : deviation[i]
      if (size > far[i]) far[i] = size
    }
  }
  END {
    split("loss of step 1,norm of step 1,loss of step 2,norm of step 2,evaluation,gradients", name, ",")
    for (key in low) {
      split(key, part, " ")
      spread = high[key] - low[key]
      if (spread > wide[part[2]]) { wide[part[2]] = spread; where[part[2]] = part[1] }
    }
    print runs " trainings"
    for (i = 1; i <= 6; ++i) {
      printf "%-15s at most %.3f, between sets %.3f (%s)\n", name[i], far[i], wide[i], where[i]
      if (wide[i] * 3 > 1) failed = 1
    }
    if (failed || !runs) { print "error: sets differ by more than a third of a bound"; exit 1 }
  }'
