#!/bin/bash
# Slurm takes every script's options; a type of MPI that it does not have is refused with those that it has; the tasks of an
# array train what their lines of a list say.
# shellcheck source-path=SCRIPTDIR source=jobs.sh
. "$(dirname "$0")/jobs.sh"

for script in "$source"/slurm/*.sbatch; do
  expect "$(basename "$script") would be taken" sbatch --quiet --test-only "$script" a b c d
done

# Ends like a job of the script, and leaves what it said in a file.
run_job() { # exit code, file, arguments of sbatch
  local job
  job=$(sbatch --parsable --output="$work/$2" "${@:3}")
  jobs+=("$job")
  wait_until 60 "job $job ends" has_ended "$job"
  expect "job $job ends with $1" has_exit_code "$job" "$1:0"
}

ALPA_MPI=pmi9 run_job 2 mpi.out "$source/slurm/train.sbatch" "$plan" "$data" run
expect "what was asked for is named, and what there is" grep -q "no MPI type 'pmi9' here, expected one of: .*pmi2" mpi.out
expect "nothing is trained" test ! -e run
code=0
ALPA_MPI=pmi9 "$source/slurm/workflow.sh" --model "$source/tests/data/tiny_gpt.toml" --data "$data" --run-dir chain 2>said || code=$?
expect "a chain is refused" test "$code" = 2
expect "by its name" grep -q "^workflow.sh: error: Slurm has no MPI type 'pmi9'" said
expect "before anything waits" test -z "$(squeue -h)"
ALPA_BIN=/nowhere run_job 3 missing.out --export="ALPA_BIN=/nowhere,PATH=/usr/bin:/bin" "$source/slurm/train.sbatch" "$plan" "$data" run
expect "it is said what is missing" grep -q 'set ALPA_BIN to their folder' missing.out

printf '%s\n' "base = \"$source/tests/data/tiny_gpt.toml\"" 'name = "fast"' '[training]' 'learning_rate = 0.01' >fast.toml
printf '%s\n' "$source/tests/data/tiny_gpt.toml --method data-parallel" "fast.toml --method zero-1" >list
array=$(sbatch --parsable --array=1-3 --nodes=1 --ntasks=2 --output="$work/sweep.%a.out" "$source/slurm/sweep.sbatch" \
  list "$cluster/profile.h5" "$data" runs --steps 4)
jobs+=("$array")
has_no_tasks() { [[ -z $(squeue -h -j "$array" 2>/dev/null) ]]; }
wait_until 120 "the array ends" has_no_tasks
expect "the first trains" test "$(last_step runs/1-tiny_gpt)" = 4
expect "the second trains" test "$(last_step runs/2-fast)" = 4
expect "not alike" test "$(losses runs/1-tiny_gpt)" != "$(losses runs/2-fast)"
expect "each in its way" grep -q zero-1 <("$ALPA_BIN/alpa-plan" explain runs/2-fast/plan.h5)
expect "the third has no line" grep -q "sweep.sbatch: error: 'list' has no line 3" sweep.3.out
expect "and fails" has_exit_code "${array}_3" 3:0
