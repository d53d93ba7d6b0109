#!/bin/bash
# workflow.sh writes out its jobs faithfully, and refuses what it cannot submit. Needs no Slurm.
#
#   workflow_test.sh FOLDER        works in FOLDER, which is removed
set -euo pipefail

workflow=$(realpath "$(dirname "$0")/../../slurm/workflow.sh") slurm=$(realpath "$(dirname "$0")/../../slurm")
folder=$(realpath -m "${1:?usage: workflow_test.sh FOLDER}")
rm -rf "$folder" && mkdir -p "$folder/my bin"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for program in alpa-profile alpa-plan alpa-train; do install -m 755 /dev/null "my bin/$program"; done
export ALPA_BIN="$folder/my bin"
touch "a model's.toml" data.txt

fail() {
  echo "FAILED: $*"
  exit 1
}

expect_refusal() { # exit code, text, arguments of workflow.sh
  local code=0 want=$1 text=$2 said
  shift 2
  said=$("$workflow" "$@" 2>&1) || code=$?
  [[ $code == "$want" ]] || fail "workflow.sh $* ended with $code, not $want"
  [[ $said == *"$text"* ]] || fail "workflow.sh $* said '$said', not '$text'"
}

expect_refusal 2 '--model is missing'
expect_refusal 2 '--run-dir is missing' --model "a model's.toml" --data data.txt
expect_refusal 2 "unknown option '--node'" --node 2
expect_refusal 2 '--steps wants a value' --steps
expect_refusal 2 "--nodes wants a whole number, got 'two'" --model m --data d --run-dir r --nodes two
expect_refusal 2 "--device is cpu or cuda, got 'gpu'" --model m --data d --run-dir r --device gpu
expect_refusal 2 "--sbatch: expected profile, plan, tune or train, got '--mem=1G'" --sbatch --mem=1G --data d
expect_refusal 2 '--option wants a job and an option' --option plan
expect_refusal 3 "no model file 'm.toml'" --model m.toml --data d --run-dir r
ALPA_BIN=/nowhere expect_refusal 3 "no command '/nowhere/alpa-profile'" --model "a model's.toml" --data d --run-dir r

mkdir -p mine && touch mine/plan.h5
expect_refusal 3 "mine/plan.h5' is there, and no earlier chain made it" --model "a model's.toml" --data d --run-dir mine
mkdir -p again/logs && touch again/plan.h5 again/logs/plan.7.out
"$workflow" --dry-run --model "a model's.toml" --data d --run-dir again >/dev/null || fail "a chain cannot go on"

# Read back by a shell, each printed command is the one that would run: here sbatch prints its arguments.
sbatch() { printf '%s\n' "$@"; }
# shellcheck disable=SC2016
printed=$("$workflow" --dry-run --model "a model's.toml" --data data.txt --run-dir "run 100%" --nodes 2 \
  --ntasks-per-node 4 --cpus-per-task 3 --device cuda --time 2-0 --steps 7 -- '--comment=for $HOME; "me"')
[[ ! -e "run 100%" ]] || fail "a dry run makes folders"
mapfile -t commands <<<"$printed"
[[ ${#commands[@]} == 3 ]] || fail "three commands are printed, not '$printed'"

expect_arguments() { # printed command; the arguments that differ by job on standard input
  local got want
  got=$(eval "$1" | grep -v -e '^--parsable$' -e '^--export=ALL$' -e '^--open-mode=append$')
  want=$(cat)
  diff <(echo "$want") <(echo "$got") || fail "other arguments than expected"
}

expect_arguments "${commands[0]}" <<END
--job-name=alpa-profile
--output=$folder/run 100%%/logs/profile.%j.out
--nodes=2
--ntasks-per-node=4
--cpus-per-task=3
--comment=for \$HOME; "me"
$slurm/profile.sbatch
$folder/a model's.toml
$folder/run 100%/profile.h5
--device
cuda
END
expect_arguments "${commands[1]}" <<END
--job-name=alpa-plan
--output=$folder/run 100%%/logs/plan.%j.out
--dependency=afterok:<profile>
--kill-on-invalid-dep=yes
--comment=for \$HOME; "me"
$slurm/plan.sbatch
$folder/a model's.toml
$folder/run 100%/profile.h5
$folder/run 100%/plan.h5
--force
END
expect_arguments "${commands[2]}" <<END
--job-name=alpa-train
--output=$folder/run 100%%/logs/train.%j.out
--dependency=afterok:<plan>
--kill-on-invalid-dep=yes
--nodes=2
--ntasks-per-node=4
--cpus-per-task=3
--time=2-0
--comment=for \$HOME; "me"
$slurm/train.sbatch
$folder/run 100%/plan.h5
$folder/data.txt
$folder/run 100%
--device
cuda
--steps
7
END

printed=$("$workflow" --dry-run --model "a model's.toml" --data data.txt --run-dir run --sbatch plan '--comment=of "one"' \
  --option plan --overlap=all --sbatch train --mem=9G --option train --keep=1 --sbatch plan --mem=7G -- --partition=all)
mapfile -t commands <<<"$printed"
expect_arguments "${commands[1]}" <<END
--job-name=alpa-plan
--output=$folder/run/logs/plan.%j.out
--dependency=afterok:<profile>
--kill-on-invalid-dep=yes
--partition=all
--comment=of "one"
--mem=7G
$slurm/plan.sbatch
$folder/a model's.toml
$folder/run/profile.h5
$folder/run/plan.h5
--force
--overlap=all
END
[[ ${commands[2]} == *' --partition=all --mem=9G '*'/train.sbatch '*' --keep=1 ' ]] || fail "options of the training: '${commands[2]}'"
[[ ${commands[0]} != *mem* && ${commands[0]} != *keep* ]] || fail "options of others: '${commands[0]}'"

printed=$("$workflow" --dry-run --model "a model's.toml" --data data.txt --run-dir run --tune 30)
mapfile -t commands <<<"$printed"
[[ ${#commands[@]} == 4 ]] || fail "four commands are printed, not '$printed'"
expect_arguments "${commands[2]}" <<END
--job-name=alpa-tune
--output=$folder/run/logs/tune.%j.out
--dependency=afterok:<plan>
--kill-on-invalid-dep=yes
--nodes=1
--ntasks-per-node=1
--cpus-per-task=1
$slurm/tune.sbatch
$folder/run/plan.h5
$folder/data.txt
$folder/run/tuned.h5
--profile
$folder/run/profile.h5
--device
cpu
--trials
30
--anew
END
[[ ${commands[3]} == *'afterok:\<tune\>'*"run/tuned.h5"* ]] || fail "not the tuned plan is trained: '${commands[3]}'"

printed=$("$workflow" --dry-run --model "a model's.toml" --data data.txt --run-dir run)
[[ $(grep -c -- ' --device cpu $' <<<"$printed") == 2 ]] || fail "profile and train take CPUs by default: '$printed'"

for script in profile plan tune train sweep; do
  code=0
  printed=$(env -u SLURM_JOB_ID bash "$slurm/$script.sbatch" 2>&1) || code=$?
  [[ $code == 2 && $printed == "usage: sbatch "*"[options of sbatch] $script.sbatch "* ]] ||
    fail "$script.sbatch without arguments: exit code $code, '$printed'"
done
