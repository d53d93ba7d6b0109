#!/bin/bash
# workflow.sh takes a model from profile over plan and tuned plan to a trained run; where a job fails, those after it do not run.
# shellcheck source-path=SCRIPTDIR source=jobs.sh
. "$(dirname "$0")/jobs.sh"

submit_workflow() { # model, run folder
  mapfile -t jobs < <("$source/slurm/workflow.sh" --model "$1" --data "$data" --run-dir "$2" --nodes 2 \
    --ntasks-per-node 2 --time 30 --tune 9 --steps 10 | grep -oP '(?<=job )\d+')
  expect "four jobs are submitted" test "${#jobs[@]}" = 4
}

run="$work/a run with spaces"
submit_workflow "$source/tests/data/tiny_gpt.toml" "$run"
wait_until 400 "the chain ends" has_ended "${jobs[3]}"
for job in "${jobs[@]}"; do expect "job $job completes" is_in_state "$job" COMPLETED; done
expect "training makes its ten steps" test "$(last_step "$run")" = 10
expect "each step is logged once" has_consecutive_steps "$run"
# What was planned, by how the machines were measured, may have fewer.
expect "up to nine plans are tried" grep -q "trial 2 of 9" "$run/logs/tune.${jobs[2]}.out"
expect "the fastest is known" grep -q "^fastest: " "$run/logs/tune.${jobs[2]}.out"
cp "$run/plan.h5" "$run/profile.h5" "$cluster"

submit_workflow "$source/tests/data/tiny_gpt.toml" "$run"
wait_until 400 "the same chain again ends" has_ended "${jobs[3]}"
for job in "${jobs[@]}"; do expect "job $job of it completes" is_in_state "$job" COMPLETED; done
expect "it goes on" grep -q 'resuming from step 10' "$run/logs/train.${jobs[3]}.out"

echo 'this is no model' >broken.toml
submit_workflow broken.toml broken
wait_until 120 "the chain ends" has_ended "${jobs[3]}"
expect "the profile fails" is_in_state "${jobs[0]}" FAILED
expect "it fails as bad input does" has_exit_code "${jobs[0]}" 3:0
expect "the plan is not made" is_in_state "${jobs[1]}" CANCELLED
expect "nothing is tuned" is_in_state "${jobs[2]}" CANCELLED
expect "nothing is trained" is_in_state "${jobs[3]}" CANCELLED
