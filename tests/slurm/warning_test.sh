#!/bin/bash
# Warned of its end by a signal, a job saves, exits with 75 and puts itself back in the queue, as often as it may.
# shellcheck source-path=SCRIPTDIR source=jobs.sh
. "$(dirname "$0")/jobs.sh"

export ALPA_MAX_REQUEUES=1
start_training run
scancel --signal=USR1 "${jobs[0]}"
wait_until 120 "the job puts itself back in the queue" has_restarted "${jobs[0]}" 1
before=$(last_step run)
wait_until 120 "training goes on" has_step run $((before + 3))
scancel --signal=USR1 "${jobs[0]}"
wait_until 120 "the job ends" has_ended "${jobs[0]}"
expect "it ends as one that may be submitted again" has_exit_code "${jobs[0]}" 75:0
expect "it was requeued once" has_restarted "${jobs[0]}" 1
expect "it says why not again" grep -q 'after 1 requeues, the most allowed' alpa-train.*.out
expect "it goes on from a checkpoint" grep -Eq 'resuming from step [1-9]' alpa-train.*.out
expect "no step made before is set aside" test ! -e run/metrics.set-aside.jsonl
expect "no step is lost or done twice" has_consecutive_steps run
