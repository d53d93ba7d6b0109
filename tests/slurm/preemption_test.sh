#!/bin/bash
# A job that Slurm takes off its nodes goes on from its checkpoint when it is started again; a file STOP ends it.
# shellcheck source-path=SCRIPTDIR source=jobs.sh
. "$(dirname "$0")/jobs.sh"

start_training run
scontrol requeue "${jobs[0]}"
wait_until 120 "the job is started again" has_restarted "${jobs[0]}" 1
wait_until 120 "the job runs again" is_in_state "${jobs[0]}" RUNNING
before=$(last_step run)
wait_until 120 "training goes on" has_step run $((before + 3))
end=$(date -d "$(job_field "${jobs[0]}" EndTime)" +%s)
touch run/STOP
wait_until 120 "the job ends" has_ended "${jobs[0]}"
expect "it ends as one that may be submitted again" has_exit_code "${jobs[0]}" 75:0
expect "it is not put back in the queue" has_restarted "${jobs[0]}" 1
expect "training knows when the job ends" grep -q -- "--end-time $end " <(last_training_command run)
expect "it goes on from a checkpoint" grep -Eq 'resuming from step [1-9]' alpa-train.*.out
expect "no step made before is set aside" test ! -e run/metrics.set-aside.jsonl
expect "no step is lost or done twice" has_consecutive_steps run
