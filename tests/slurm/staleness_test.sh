#!/bin/bash
# Two nodes train ahead of each other while a third holds the optimizer's states: a rank that is stopped again and again keeps
# the other within the bound, and the checkpoint is one that two nodes go on from alone.
# shellcheck source-path=SCRIPTDIR source=jobs.sh
. "$(dirname "$0")/jobs.sh"

write_three_nodes

make_plan() { # its file, options of alpa-plan
  "$ALPA_BIN/alpa-plan" "$source/configs/models/gpt-demo.toml" --cluster cluster.toml --devices 2 --micro-batches 1 \
    --method data-parallel --out "$1" "${@:2}" >>log
}

# The process of that rank of this test's runs; nothing where there is none.
process_of_rank() {
  local process
  for process in $(pgrep -f "alpa-train stale.h5 .*--run-dir stale"); do
    if grep -zqx "SLURM_PROCID=$1" "/proc/$process/environ" 2>/dev/null &&
      grep -zqxF "SLURM_CONF=$SLURM_CONF" "/proc/$process/environ" 2>/dev/null; then echo "$process"; fi
  done
}

leads() { { grep -o '"lead":[0-9]*' stale/metrics.jsonl 2>/dev/null || true; } | cut -d: -f2 | sort -n; }

# A rank stands still after every few steps: longer each time, until the other is seen as far ahead as it may be. So it comes to
# that however slow the machines are.
stop_and_go() {
  local process pause=1 step=0
  while sleep 0.2; do
    if ((step > $(last_step stale))) || [[ -z $(process_of_rank 1) ]]; then continue; fi
    if [[ $(leads | tail -n 1) != 2 ]] && ((pause < 16)); then pause=$((2 * pause)); fi
    step=$(($(last_step stale) + 5))
    for process in $(process_of_rank 1); do
      kill -STOP "$process" 2>/dev/null && sleep "$pause" && kill -CONT "$process" 2>/dev/null
    done
  done
}

make_plan stale.h5 --servers 1 --staleness 2
make_plan alone.h5
expect "the bound is said" grep -q 'parameters are at most 2 steps old' log
stop_and_go &
straggler=$!
expect "three ranks train" train_on_nodes 3 stale.h5 stale 40 --checkpoint-every 20
kill "$straggler"
expect "every step is known" test "$(leads | wc -l)" = 40
expect "a rank is ahead, as far as it may" test "$(leads | tail -n 1)" = 2
expect "the steps are in their order" diff <(grep -o '"step":[0-9]*' stale/metrics.jsonl | cut -d: -f2) <(seq 40)
expect "it learns" awk -F'[:,]' 'NR == 1 { first = $2 } { last = $2 } END { exit !(last < first - 0.5) }' <(losses stale)
expect "the run goes on with its server" train_on_nodes 3 stale.h5 stale 44
expect "from where it was" grep -q 'resuming from step 40' log
expect "two ranks go on alone" train_on_nodes 2 alone.h5 stale 48
expect "from there" grep -q 'resuming from step 44' log
expect "and the server holds what they have come to" train_on_nodes 3 stale.h5 stale 50
expect "each step once" diff <(grep -o '"step":[0-9]*' stale/metrics.jsonl | cut -d: -f2) <(seq 50)
if train_on_nodes 3 stale.h5 timed 4 --timeline-steps 1; then fail "a timeline of steps that overlap is kept"; fi
expect "it is said why not" grep -q 'updates in the next forward, or at servers' log
