#!/usr/bin/env bash
# Checks and measures on a GPU machine, from an unpacked bundle (scripts/bundle.sh) or from a build:
#   scripts/gpu_check.sh [--bin FOLDER OF THE PROGRAMS] [--seconds N] [PART...]
# without a PART all of them, what is worth most first, within N seconds (460):
#   device     the device's own tests                          rates      products, attention and memory
#   losses     a tiny GPT as on the CPU, resumed there         training   GPT-2 124M in bf16
#   operators  every operator against a plain loop             plans      whole plans of one rank
#   nccl       one rank, and two on this GPU                   ranks      plans of two ranks on this GPU, one of them killed
#   graphs     a Tree-LSTM, without and with streams           profile    GPT-2 124M from its profile
#   costs      each operator of GPT-2 124M
# Prints a table (check, result, figure), a row as soon as it is known. It is kept, with what each check printed, in the
# folder $OUT, or in gpu_check/.
# Exit status: 0 nothing failed, 1 something failed, 2 wrong usage, 77 nothing failed and no GPU was found (the rows say why).
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
all_parts="device rates losses training operators plans nccl ranks graphs profile costs"
bin=$root/bin seconds=460 parts=
usage() { echo "gpu_check.sh: error: $1" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --bin) bin=${2-} && shift ;;
    --seconds) seconds=${2-} && shift ;;
    *) [[ " $all_parts " == *" $1 "* ]] || usage "there is no part '$1', but: $all_parts"
      parts+=" $1" ;;
  esac
  shift
done
[[ $seconds =~ ^[0-9]+$ ]] || usage "--seconds wants a number, not '$seconds'"
[ -x "$bin/alpa-train" ] || bin=$root/build/cuda/bin
[ -x "$bin/test_gpu" ] || { echo "gpu_check.sh: error: no test_gpu in '$bin'; scripts/bundle.sh, or cmake --build --preset cuda" >&2; exit 3; }
bin=$(cd "$bin" && pwd)
out=${OUT:-gpu_check}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 3
work=$(mktemp -d) && cd "$work" || exit 3
trap 'rm -rf "$work"' EXIT
: >"$out/checks.log"
export ALPA_SOURCE_DIR=$root PATH=$bin:$PATH
export OMP_NUM_THREADS=$(($(nproc) < 8 ? $(nproc) : 8))
deadline=$((SECONDS + seconds))

# The folders of cuBLASLt and NCCL, where the loader does not know them: the toolkit's, and those of Python's packages.
for library in libcublasLt.so.13 libnccl.so.2; do
  [[ $(ldconfig -p 2>/dev/null) != *$library* ]] || continue
  found=$(timeout 20 find /usr/local/cuda*/ /usr/lib /opt /usr/local/lib "$HOME/.local" -name "$library" -print -quit 2>/dev/null | head -1)
  [ -z "$found" ] || export LD_LIBRARY_PATH=$(dirname "$found")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done

failed=0
printf '%-38s %-8s %s\n' check result figure | tee "$out/table.txt"
row() { printf '%-38s %-8s %s\n' "$1" "$2" "$3" | tee -a "$out/table.txt"; }

# check NAME SECONDS FIGURE COMMAND...: runs a command, or a function of this script, under a time limit. FIGURE prints what
# it found, from the log on stdin.
check() {
  local name=$1 limit=$2 figure=$3 left=$((deadline - SECONDS)) status begin=$SECONDS
  shift 3
  [ -z "$no_gpu" ] || { row "$name" skipped "$no_gpu"; return 77; }
  [ "$left" -gt 5 ] || { row "$name" skipped "no time is left"; return 77; }
  timeout -k 5 $((limit < left ? limit : left)) bash -c '"$@"' check "$@" >"$out/now.log" 2>&1
  status=$?
  { echo "== $name: exit $status after $((SECONDS - begin)) s" && cat "$out/now.log"; } >>"$out/checks.log"
  case $status in
    0) row "$name" ok "$($figure <"$out/now.log"), $((SECONDS - begin)) s" ;;
    77) row "$name" skipped "$(grep -m1 -o 'skipped: .*' "$out/now.log" | cut -c10-)" ;;
    *)
      failed=1
      [ $status != 124 ] && [ $status != 137 ] || status="$status, time limit"
      row "$name" FAILED "exit $status: $(grep -m1 -iE 'error|failure' "$out/now.log" | cut -c1-140)"
      ;;
  esac
  return "${status%%,*}"
}

# Figures.
passed() { sed -n 's/^\[  PASSED  \] \([0-9]* tests\?\).*/\1/p' | tail -1; }
device() { sed -n 's/^on //p' | head -1; }
losses() { sed 's/.*"loss":\([^,]*\).*/\1/' "$1/metrics.jsonl"; }

# same_losses A B TOLERANCE: of the steps that two run folders have in common, relative.
same_losses() {
  paste <(losses "$1") <(losses "$2") | awk -v most="$3" '
    NF == 2 { ++steps; d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > worst) worst = d }
    END { printf "%d steps, losses differ by %.1e at most (allowed %s)\n", steps, worst, most; exit !(steps > 0 && worst <= most) }'
}
last() { tail -1; }

tiny=$root/tests/data/tiny_gpt.toml one_gpu=$root/configs/clusters/h200-1.toml
train() { alpa-train "$1" --data synthetic:"$2" --run-dir "$3" --resume auto --progress-s 1 "${@:4}"; }
on_the_cpu() {
  [ ! -e tiny-cpu/done ] || return 0
  alpa-plan "$tiny" --cluster "$one_gpu" --out tiny.h5 --log-level warning --force >/dev/null && train tiny.h5 64 tiny-cpu && touch tiny-cpu/done
}
serial_on_both() { on_the_cpu && train tiny.h5 64 tiny-gpu --device cuda && same_losses tiny-gpu tiny-cpu 1e-4; }
resumed_elsewhere() {
  on_the_cpu &&
  train tiny.h5 64 tiny-both --steps 10 --device cuda && train tiny.h5 64 tiny-both --device cpu && same_losses tiny-both tiny-cpu 1e-4
}
# NCCL takes ranks on one GPU for ranks on two nodes; each collective then lasts milliseconds, so few steps.
planned_for_two() {
  alpa-plan "$tiny" --cluster "$root/configs/clusters/dgx-h100-16.toml" --devices 2 --method "$1" --overlap "$2" --micro-batches 2 --out "two-$1.h5" --log-level warning --force >/dev/null
}
two_ranks() {
  on_the_cpu && planned_for_two "$1" "$2" || return
  local rank=(alpa-train "two-$1.h5" --data synthetic:64 --run-dir "two-$1" --resume never --steps 6 --device cuda)
  NCCL_SOCKET_IFNAME=lo mpiexec -n 1 -env NCCL_HOSTID first "${rank[@]}" : -n 1 -env NCCL_HOSTID second "${rank[@]}" &&
    same_losses "two-$1" tiny-cpu 1e-4
}
# The one that is left must notice by itself, here where mpiexec does not end it.
killed_rank() {
  planned_for_two data-parallel none || return
  local rank=(alpa-train two-data-parallel.h5 --data synthetic:64 --run-dir killed --resume never --steps 1000000 --device cuda)
  NCCL_SOCKET_IFNAME=lo mpiexec -disable-auto-cleanup -n 1 -env NCCL_HOSTID first "${rank[@]}" : \
    -n 1 -env NCCL_HOSTID second bash -c 'echo $$ >killed.pid; exec "$@"' rank "${rank[@]}" 2>killed.err &
  until [ "$(wc -l <killed/metrics.jsonl)" -ge 2 ]; do kill -0 $! || return; sleep 1; done 2>/dev/null
  kill -KILL "$(cat killed.pid)"
  wait $!
  cat killed.err && grep -q "a rank is gone" killed.err && echo "the other left with its message"
}
profiled() {
  alpa-profile "$gpt2" --out profile.h5 --device cuda --time-budget 40 &&
    alpa-plan "$gpt2" --profile profile.h5 --out planned.h5 --log-level warning --force >/dev/null &&
    train planned.h5 50304 planned --device cuda --checkpoint-every 0
}
predicted() { grep -o 'predicted [^,]*, measured [^(]*(median[^)]*)' | head -1; }
# Heads of 128 in sequences of 2048, products of thousands a side: what the rates of a large model are made of.
measured_rates() {
  alpa-profile "$tiny" --check --device cuda && bench_kernels "$root/tests/data/gpt_rates.toml" bf16 "$OMP_NUM_THREADS" 3 cuda
}
rates() {
  awk '$2 == "ms" && $NF == "einsum" { e = $5 } $2 == "ms" && $NF == "attention" { a = $5 } $2 == "ms" && $NF == "attention_grad" { g = $5 }
    !from_profile && past_title && NF >= 4 { f32 = $(NF-2); bf16 = $(NF-1); memory = $NF; from_profile = 1 }
    /GFLOP\/s f32/ { past_title = 1 }
    END { printf "products %s in f32, %s in bf16, in a model %s; attention %s, its gradient %s GFLOP/s; memory %s GB/s", f32, bf16, e, a, g, memory }'
}
gpt2=$root/configs/models/gpt2-124m-check.toml
gpt2_training() {
  alpa-plan "$gpt2" --cluster "$one_gpu" --method serial --out gpt2.h5 --log-level warning --force >/dev/null &&
    train gpt2.h5 50304 gpt2 --device cuda --checkpoint-every 0
}
# median RUN MEMBER: of the steps after the first three.
median() { sed -n 's/.*"'"$2"'":\([^,]*\),.*/\1/p' "$1/metrics.jsonl" | tail -n +4 | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# The rate, and where the loss went.
speed() {
  printf '%.0f tokens/s (median), ' "$(median gpt2 tokens_per_s)"
  losses gpt2 | awk 'NR == 1 { first = $1 } END { printf "loss %.3f to %.3f", first, $1 }'
}
# Rounds of trees hold what leads from child to parent; with all else in them too, three streams have work.
graph_training() {
  local form
  for form in leading streams; do
    sed 's/^hidden = .*/hidden = 512/; s/^group_samples = .*/group_samples = 256/' "$root/configs/models/tree-lstm.toml" >"trees-$form.toml" || return
    [ $form = leading ] || sed -i 's/^\[graphs\].*/&\neager = false\nlazy = false/' "trees-$form.toml"
    alpa-plan "trees-$form.toml" --cluster "$one_gpu" --method serial --out "trees-$form.h5" --log-level warning --force >/dev/null &&
      alpa-train "trees-$form.h5" --data synthetic-trees:512 --run-dir "trees-$form" --resume never --steps 40 --checkpoint-every 0 --device cuda || return
  done
  same_losses trees-leading trees-streams 1e-3
}
graph_speed() { echo "a step of 256 trees $(median trees-leading step_s) s, on streams $(median trees-streams step_s) s"; }
op_rates() { awk '$NF == "einsum" { e = $5 } $NF == "attention" { a = $5 } $NF == "attention_grad" { g = $5 } END { printf "products %s, attention %s, its gradient %s GFLOP/s", e, a, g }'; }

# For the shells that checks run in.
export root tiny one_gpu gpt2
export -f losses same_losses train measured_rates on_the_cpu serial_on_both resumed_elsewhere planned_for_two two_ranks killed_rank profiled gpt2_training graph_training

device_part() { :; }  # always runs
rates_part() { check "products, attention, memory" 90 rates measured_rates; }
losses_part() {
  check "losses as on the CPU" 60 last serial_on_both
  check "resumed on the CPU" 60 last resumed_elsewhere
}
training_part() { check "training GPT-2 124M, bf16" 120 speed gpt2_training; }
operators_part() { check "operators" 120 passed test_gpu --gtest_filter='On/*'; }
plans_part() { check "plans of one rank" 60 passed test_gpu --gtest_filter='*GpuTraining*'; }
nccl_part() {
  check "one rank and NCCL with one" 60 passed test_gpu --gtest_filter='*SelfConformance*:NcclConformance*'
  check "NCCL, two ranks on one GPU" 150 passed mpiexec -n 2 test_gpu_ranks
}
ranks_part() {
  for method in data-parallel zero-3 inter-only; do
    check "two ranks, $method" 90 last two_ranks $method none
    check "two ranks, $method, overlapped" 90 last two_ranks $method all
  done
  check "a rank that is killed" 60 last killed_rank
}
graphs_part() { check "Tree-LSTM, 512 wide" 60 graph_speed graph_training; }
profile_part() { check "GPT-2 124M profiled, planned" 120 predicted profiled; }
costs_part() { check "operators of GPT-2 124M, bf16" 120 op_rates bench_kernels "$gpt2" bf16 $OMP_NUM_THREADS 3 cuda; }

no_gpu=
check "device" 60 device test_gpu --gtest_filter='*DeviceConformance*cuda*' || [ $? != 77 ] || no_gpu=$(test_gpu --gtest_filter=none | sed -n 's/^skipped: //p')
for part in ${parts:-$all_parts}; do "${part}_part"; done
rm -f "$out/now.log"

[ $failed = 0 ] || { echo "something failed; what was printed is in $out/checks.log"; exit 1; }
[ -z "$no_gpu" ] || exit 77
