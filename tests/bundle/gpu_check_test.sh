#!/usr/bin/env bash
# What gpu_check.sh runs, in which order, and what it leaves behind, with programs that only print.
#   gpu_check_test.sh SCRIPTS
set -euo pipefail
scripts=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
program() { printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1" && chmod +x "$work/bin/$1"; }
fail() { echo "$1"; cat "$work"/out*/table.txt; exit 1; }
gpu_check() { OUT=$work/out "$scripts/gpu_check.sh" --bin "$work/bin" "$@" >"$work/printed" 2>&1; }
rows() { sed 's/ *$//; s/, [0-9]* s$//; s/  */ /g' "$work/out/table.txt"; }
expect_rows() { [ "$(rows)" = "$1" ] || fail "these rows were expected:
$1
and there are:"; }

program alpa-train 'exit 1'
program alpa-profile 'cat <<X
node  GFLOP/s f32  GFLOP/s bf16       GB/s
n1        50000.0      700000.0    4000.00
X'
program bench_kernels 'cat <<X
 calls   ms each    ms all  GFLOP/s    GB/s  call
    12     1.000     12.00 600000.0   100.0  einsum bf16[16384x2048]

    12.00 ms  60.0 %  600000.0 GFLOP/s   100.0 GB/s  einsum
     4.00 ms  20.0 %  300000.0 GFLOP/s   100.0 GB/s  attention
     8.00 ms  20.0 %  200000.0 GFLOP/s   100.0 GB/s  attention_grad
X'

program test_gpu 'echo "skipped: this machine has no NVIDIA driver"; exit 77'
gpu_check rates && fail "0 was not expected without a GPU" || [ $? = 77 ] || fail "77 was expected without a GPU"
expect_rows "check result figure
device skipped this machine has no NVIDIA driver
products, attention, memory skipped this machine has no NVIDIA driver"

gpu_check speed && fail "a part that is none was taken" || [ $? = 2 ] || fail "2 was expected for a part that is none"
grep -q "no part 'speed', but: device rates losses" "$work/printed" || fail "the parts were expected"

# Parts as asked for; one that fails does not keep the others from running.
program test_gpu 'echo "on NVIDIA H200"; [[ "$*" != *GpuTraining* ]] || { echo "error: out of tune"; exit 1; }; echo "[  PASSED  ] 3 tests."'
gpu_check plans operators rates && fail "a failure was expected" || [ $? = 1 ] || fail "1 was expected"
expect_rows "check result figure
device ok NVIDIA H200
plans of one rank FAILED exit 1: error: out of tune
operators ok 3 tests
products, attention, memory ok products 50000.0 in f32, 700000.0 in bf16, in a model 600000.0; attention 300000.0, its gradient 200000.0 GFLOP/s; memory 4000.00 GB/s"
grep -q "== plans of one rank: exit 1" "$work/out/checks.log" || fail "what the checks printed was expected"

# A run that is killed leaves its rows, and what the check at hand has printed.
program test_gpu '[[ "$*" != *On/* ]] || { echo half way; while [ -e "$0" ]; do sleep 0.1; done; }; echo "on NVIDIA H200"'
OUT=$work/out setsid "$scripts/gpu_check.sh" --bin "$work/bin" rates operators >/dev/null 2>&1 &
until grep -qs "half way" "$work/out/now.log"; do kill -0 $! || fail "it ended"; sleep 0.05; done
kill -KILL -- -$!
wait $! || true
[ "$(rows | wc -l)" = 3 ] || fail "two rows were expected"
