#!/usr/bin/env bash
# The whole path on this machine: profiles a small GPT on 4 CPU ranks, plans it as two pipeline stages of two devices each,
# trains it on real text, and has it continue a beginning. Sets up everything it needs; six minutes on two cores.
#   scripts/demo.sh [RUN_DIR]        (default: runs/demo, begun anew)
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
run=${1:-$here/runs/demo}
. "$here/scripts/setup.sh"

echo "== build"
cd "$here"
cmake --preset release >/dev/null
cmake --build --preset release --target alpa-profile alpa-plan alpa-train
bin=$here/build/release/bin
rm -rf "$run"
mkdir -p "$run"
export OMP_NUM_THREADS=1

echo "== profile: operators and collectives at the shapes the planner may choose, for micro-batches as the pin has them"
mpiexec -n 4 "$bin/alpa-profile" configs/models/gpt-demo.toml --micro-batch-samples 4 --repetitions 3 --out "$run/profile.h5"

echo "== plan: two stages, two-way sharding in each"
"$bin/alpa-plan" configs/models/gpt-demo.toml --profile "$run/profile.h5" --pin configs/pins/two-stages-of-two.toml --out "$run/plan.h5"
"$bin/alpa-plan" report "$run/plan.h5" --profile "$run/profile.h5" --out "$run/plan.html"

echo "== train on share/text/genesis.txt"
mpiexec -n 4 "$bin/alpa-train" "$run/plan.h5" --data share/text/genesis.txt --run-dir "$run" --evaluate-every 100
"$bin/alpa-train" report "$run" --plan "$run/plan.h5" --profile "$run/profile.h5" --out "$run/run.html"

# Who knows only how frequent each byte is can do no better than the entropy of that distribution.
entropy=$(od -An -v -tu1 -w1 share/text/genesis.txt | sort | uniq -c | awk '
  { count[NR] = $1; all += $1 } END { for (i in count) h -= count[i] / all * log(count[i] / all); print h }')
tail -n 1 "$run/metrics.jsonl" | sed 's/.*"loss":\([0-9.]*\).*/\1/' | awk -v entropy="$entropy" '
  { printf "loss %.3f after the last step; the text has %.3f nats a byte by frequencies alone, 0.85 of which are %.3f\n",
           $1, entropy, 0.85 * entropy
    exit !($1 <= 0.85 * entropy) }' || { echo "demo.sh: error: it has not learned enough" >&2; exit 1; }
echo "== sample: what it makes of a beginning"
mpiexec -n 4 "$bin/alpa-train" sample "$run/plan.h5" --run-dir "$run" --prompt "In the beginning" --temperature 0.6 --log-level warning

echo "plan, checkpoints and metrics are in $run; look into them with h5ls -r and h5dump, or at the pages"
echo "  $run/plan.html"
echo "  $run/run.html"
