# What the tests in this folder share. Each is run as
#
#   NAME_test.sh CLUSTER BIN
#
# with CLUSTER the folder of a cluster that cluster.sh has brought up and BIN the folder of the commands. A test works
# in CLUSTER/NAME, and ends with 0, with 1 and the logs of its jobs, or with 77 where there is no cluster.
# shellcheck shell=bash
set -euo pipefail

cluster=$(realpath -m "${1:?usage: $0 CLUSTER BIN}") source=$(realpath "$(dirname "$0")/../..")
ALPA_BIN=$(realpath "${2:?usage: $0 CLUSTER BIN}") SLURM_CONF=$cluster/slurm.conf
export ALPA_BIN SLURM_CONF
data=synthetic:64  # tokens of tests/data/tiny_gpt.toml
plan=$cluster/plan.h5  # for four ranks; chain_test.sh leaves it, with its profile.h5, for the others
work=$cluster/$(basename "$0" _test.sh)
jobs=()  # submitted by this test

if [[ ! -e $SLURM_CONF ]]; then
  echo "skipped: no Slurm cluster in $cluster"
  exit 77
fi
rm -rf "$work" && mkdir -p "$work"
cd "$work"

finish() {
  local code=$? log
  ((${#jobs[@]} == 0)) || scancel --quiet "${jobs[@]}" || true
  ((code != 0)) || return 0
  shopt -s nullglob globstar
  for log in "$work"/**/*.out; do echo "--- $log" && tail -n 30 "$log"; done
}
trap finish EXIT

fail() {
  echo "FAILED: $*"
  exit 1
}

expect() { # claim, command...
  local claim=$1
  shift
  "$@" || fail "$claim ($*)"
}

# Three nodes of one device, for plans with servers: cluster.toml.
write_three_nodes() {
  cp "$source/tests/slurm/three_nodes.toml" cluster.toml
}

# Trains on so many nodes, a rank on each, by a plan, in a run folder, up to a step; further options follow.
train_on_nodes() {
  timeout 120 srun --mpi=pmi2 --kill-on-bad-exit=1 --nodes="$1" --ntasks="$1" --ntasks-per-node=1 \
    "$ALPA_BIN/alpa-train" "$2" --data "$data" --run-dir "$3" --steps "$4" "${@:5}" >>log 2>&1
}

losses() { grep -o '"loss":[^,]*' "$1/metrics.jsonl"; }

# Waits until the command succeeds; a test that waits longer than the bound has failed.
wait_until() { # seconds, claim, command...
  local end=$((SECONDS + $1)) claim=$2
  shift 2
  until "$@"; do
    ((SECONDS < end)) || fail "not in time: $claim ($*)"
    sleep 0.2
  done
}

job_field() { # job, field of "scontrol show job"
  scontrol show job --oneliner "$1" | grep -oP "(?<=\b$2=)\S*" | head -n 1
}

has_ended() {
  case $(job_field "$1" JobState) in PENDING | CONFIGURING | RUNNING | COMPLETING | REQUEUED | SUSPENDED) return 1 ;; esac
}

is_in_state() { [[ $(job_field "$1" JobState) == "$2" ]]; }
has_exit_code() { [[ $(job_field "$1" ExitCode) == "$2" ]]; } # code:signal
has_restarted() { [[ $(job_field "$1" Restarts) == "$2" ]]; }

# Starts to train on two nodes with two ranks each, with no end of its own, and waits until it has made steps.
start_training() { # run folder, options of alpa-train
  expect "chain_test.sh has left a plan" test -e "$plan"
  mkdir -p "$1"
  jobs+=("$(sbatch --parsable --nodes=2 --ntasks-per-node=2 --time=30 --output="$work/%x.%j.out" \
    "$source/slurm/train.sbatch" "$plan" "$data" "$1" --steps 1000000 "${@:2}")")
  wait_until 120 "training makes steps" has_step "$1" 3
}

last_step() { # run folder
  { tail -n 1 "$1/metrics.jsonl" 2>/dev/null || true; } | grep -oP '(?<="step":)\d+' || echo 0
}
has_step() { (($(last_step "$1") >= $2)); } # run folder, step

# Every step once and in order, however often the run was interrupted.
has_consecutive_steps() { # run folder
  grep -oP '(?<="step":)\d+' "$1/metrics.jsonl" | awk '$1 != NR { exit 1 }'
}

# The command that wrote the newest checkpoint.
last_training_command() { # run folder
  local checkpoints=("$1"/checkpoints/step-*.h5)
  h5dump --width=0 --attribute=/provenance/command "${checkpoints[-1]}"
}

# Processes of the ranks of a job, or of one.
ranks() { # job [rank]
  local files
  mapfile -t files < <(pgrep -x alpa-train | sed 's|.*|/proc/&/environ|')
  ((${#files[@]} == 0)) && return
  mapfile -t files < <(grep -lzsxF "SLURM_CONF=$SLURM_CONF" "${files[@]}")
  ((${#files[@]} == 0)) && return
  mapfile -t files < <(grep -lzsxF "SLURM_JOB_ID=$1" "${files[@]}")
  (($# == 1 || ${#files[@]} == 0)) || mapfile -t files < <(grep -lzsxF "SLURM_PROCID=$2" "${files[@]}")
  printf '%s\n' "${files[@]//[^0-9]/}"
}
has_no_ranks() { [[ -z $(ranks "$1") ]]; }
