#!/bin/bash
# Two nodes train with a third that helps to add up, and go on without it: checkpoints and losses are the same.
# shellcheck source-path=SCRIPTDIR source=jobs.sh
. "$(dirname "$0")/jobs.sh"

write_three_nodes

make_plan() { # its file, options of alpa-plan
  "$ALPA_BIN/alpa-plan" "$source/configs/models/gpt-demo.toml" --cluster cluster.toml --devices 2 --micro-batches 1 \
    --method data-parallel --sync one --out "$1" "${@:2}" >>log
}

train() { train_on_nodes "$@" --checkpoint-every 2; } # nodes, plan, run folder, steps


make_plan served.h5 --servers 1
make_plan alone.h5
expect "the plan has a server" grep -q 'on 2 devices and 1 server of' log
expect "which has something to do" grep -q '^ *serve axis 0' <("$ALPA_BIN/alpa-plan" simulate served.h5 --program)
expect "three ranks train" train 3 served.h5 served 4
expect "one of them serves" grep -q 'on 3 ranks, 1 of which serve' log
expect "two ranks train alike" train 2 alone.h5 alone 4
expect "their losses are the same" diff <(losses served) <(losses alone)
expect "a run goes on without the server" train 2 alone.h5 served 8
expect "from where it was" grep -q 'resuming from step 4' log
expect "another goes on with one" train 3 served.h5 alone 8
expect "their losses stay the same" diff <(losses served) <(losses alone)
