#!/bin/bash
# Warned of its end by a signal, a profile is requeued and goes on; what waits for it waits on.
# shellcheck source-path=SCRIPTDIR source=jobs.sh
. "$(dirname "$0")/jobs.sh"

has_measured() { grep -qs ' measured in ' alpa-profile.*.out; }

export ALPA_MAX_REQUEUES=1
jobs+=("$(sbatch --parsable --nodes=2 --ntasks-per-node=2 --time=30 --output="$work/%x.%j.out" \
  "$source/slurm/profile.sbatch" "$source/tests/data/tiny_gpt.toml" profile.h5 \
  --micro-batch-samples 8 --least-sample-ms 3)")
jobs+=("$(sbatch --parsable --dependency="afterok:${jobs[0]}" --kill-on-invalid-dep=yes --output=/dev/null --wrap true)")
wait_until 120 "some things are measured" has_measured
scancel --signal=USR1 "${jobs[0]}"
wait_until 120 "the job puts itself back in the queue" has_restarted "${jobs[0]}" 1
expect "what was measured is kept" test -s profile.h5
wait_until 240 "the job after it ends" has_ended "${jobs[1]}"
expect "the profile completes" is_in_state "${jobs[0]}" COMPLETED
expect "it goes on where it was" grep -Eq ' [1-9][0-9]* known before, 0 failed, 0 left' alpa-profile.*.out
expect "the job after it runs" is_in_state "${jobs[1]}" COMPLETED
