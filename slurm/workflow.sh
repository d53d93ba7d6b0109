#!/bin/bash
# Submits the whole path: profile a model, plan it, tune the plan if asked, train it, each job after the one before has succeeded.
#
#   workflow.sh --model MODEL.toml --data DATA --run-dir DIR [options] [-- options of sbatch]
#
#   --model FILE            the model (TOML)
#   --data PATH             the training data, as alpa-train takes it
#   --run-dir DIR           where profile.h5, plan.h5, logs, metrics and checkpoints go; made if missing
#   --nodes N               machines to profile and train on (default 1)
#   --ntasks-per-node N     ranks per machine (default 1)
#   --cpus-per-task N       CPUs per rank (default 1)
#   --device cpu|cuda       where ranks profile and train (default cpu); GPUs are asked for with options of sbatch
#   --time T                limit of the training job, as sbatch takes it (default 24:00:00); longer runs are requeued
#   --tune N                trials of how gradients are synchronised, before the training (default 0: none); tuned.h5 is
#                           the plan that is trained by then
#   --steps N               training steps (default: as the model file says)
#   --max-requeues N        how often profiling, tuning and training may each put themselves back in the queue (default 10)
#   --sbatch JOB OPTION     an option of sbatch for one of the jobs (profile, plan, tune, train), after those for all of them, e.g.
#                           --sbatch plan --mem=64G; may be repeated
#   --option JOB OPTION     an option of its command, e.g. --option plan --overlap=all; may be repeated
#   --dry-run               print the commands instead of running them
#   -- OPTIONS              for sbatch of all jobs, e.g. -- --partition=gpu --gpus-per-node=8
#
# Prints the ids of the jobs. Where one fails, those after it are cancelled by Slurm. The same command again goes on
# from the newest checkpoint, by a plan made anew from all that has been measured; a plan in DIR that no earlier chain
# made is refused. The commands are taken from ALPA_BIN, else from the PATH, else from the prefix that this script is
# installed in, or from ../build/release/bin beside its folder. ALPA_MPI is what srun --mpi takes (pmi2). Exit codes:
# 0 submitted, 2 usage, 3 a file is missing or in the way, else that of sbatch.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
model='' data='' run_dir='' steps='' dry_run=''
nodes=1 ntasks_per_node=1 cpus_per_task=1 device=cpu time=24:00:00 max_requeues=10 tune=0
sbatch_options=() submitted=()
sbatch_profile=() sbatch_plan=() sbatch_tune=() sbatch_train=()  # of one job
option_profile=() option_plan=() option_tune=() option_train=()  # of its command

refuse() { # exit code, message
  printf 'workflow.sh: error: %s\n' "$2" >&2
  exit "$1"
}

usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; }

parse() {
  local option
  while (($# > 0)); do
    option=$1
    case $option in
      -h | --help) usage && exit 0 ;;
      --dry-run) dry_run=yes && shift && continue ;;
      --) shift && sbatch_options=("$@") && return ;;
      --sbatch | --option)
        (($# > 2)) || refuse 2 "$option wants a job and an option"
        [[ $2 =~ ^(profile|plan|tune|train)$ ]] || refuse 2 "$option: expected profile, plan, tune or train, got '$2'"
        local -n list=${option#--}_$2
        list+=("$3")
        shift 3 && continue
        ;;
      --model | --data | --run-dir | --nodes | --ntasks-per-node | --cpus-per-task | --device | --time | --steps | \
        --max-requeues | --tune) ;;
      *) refuse 2 "unknown option '$option'; see workflow.sh --help" ;;
    esac
    (($# > 1)) || refuse 2 "$option wants a value"
    option=${option#--}
    printf -v "${option//-/_}" %s "$2"
    shift 2
  done
}

check() {
  local option
  for option in model data run_dir; do
    [[ -n ${!option} ]] || refuse 2 "--${option//_/-} is missing; see workflow.sh --help"
  done
  for option in nodes ntasks_per_node cpus_per_task max_requeues steps tune; do
    [[ ${!option} =~ ^[0-9]*$ ]] || refuse 2 "--${option//_/-} wants a whole number, got '${!option}'"
  done
  [[ $device == cpu || $device == cuda ]] || refuse 2 "--device is cpu or cuda, got '$device'"
  [[ -f $model ]] || refuse 3 "no model file '$model'"
  model=$(realpath "$model")
  # What is no file may be a word that alpa-train knows.
  [[ ! -e $data ]] || data=$(realpath "$data")
  run_dir=$(realpath -m "$run_dir")
  [[ ! -e $run_dir/plan.h5 || -n $(find "$run_dir/logs" -name 'plan.*.out' -print -quit 2>/dev/null) ]] ||
    refuse 3 "'$run_dir/plan.h5' is there, and no earlier chain made it: move it away, or choose another --run-dir"
}

# The jobs run copies of the scripts from Slurm's spool folder, so they get the place of the commands.
find_commands() {
  local folder=${ALPA_BIN:-} program
  if [[ -z $folder ]]; then
    folder=$here/../../../bin
    [[ -x $folder/alpa-train ]] || folder=$here/../build/release/bin
    program=$(command -v alpa-train) && folder=$(dirname "$program")
  fi
  for program in alpa-profile alpa-plan alpa-train; do
    [[ -x $folder/$program ]] || refuse 3 "no command '$folder/$program'; build it, or set ALPA_BIN"
  done
  ALPA_BIN=$(realpath "$folder") ALPA_MAX_REQUEUES=$max_requeues
  export ALPA_BIN ALPA_MAX_REQUEUES
}

# Submits one job after the last one; its id is appended to `submitted`.
submit() {
  local name=$1 id command
  shift
  command=(sbatch --parsable --export=ALL --job-name="alpa-$name" --output="${run_dir//%/%%}/logs/$name.%j.out"
    --open-mode=append)
  ((${#submitted[@]} == 0)) || command+=(--dependency="afterok:${submitted[-1]}" --kill-on-invalid-dep=yes)
  command+=("$@")
  if [[ -n $dry_run ]]; then
    printf '%q ' "${command[@]}" && echo
    submitted+=("<$name>")
    return
  fi
  id=$("${command[@]}")
  submitted+=("${id%%;*}")
  echo "$name: job ${submitted[-1]}"
}

withdraw() {
  local code=$?
  ((code == 0)) || [[ -n $dry_run ]] || ((${#submitted[@]} == 0)) || scancel "${submitted[@]}"
  exit "$code"
}

parse "$@"
check
find_commands
[[ -n $dry_run ]] || mkdir -p "$run_dir/logs"
trap withdraw EXIT

# A type that Slurm does not have is refused before anything waits in the queue.
if [[ -n ${ALPA_MPI:-} && -z $dry_run ]]; then
  # shellcheck source=slurm/job.sh
  . "$here/job.sh" workflow.sh
  (check_mpi)
fi

machines=(--nodes="$nodes" --ntasks-per-node="$ntasks_per_node" --cpus-per-task="$cpus_per_task")
submit profile "${machines[@]}" "${sbatch_options[@]}" "${sbatch_profile[@]}" \
  "$here/profile.sbatch" "$model" "$run_dir/profile.h5" --device "$device" "${option_profile[@]}"
submit plan "${sbatch_options[@]}" "${sbatch_plan[@]}" \
  "$here/plan.sbatch" "$model" "$run_dir/profile.h5" "$run_dir/plan.h5" --force "${option_plan[@]}"
trained="$run_dir/plan.h5"
if ((tune > 0)); then
  trained="$run_dir/tuned.h5"
  submit tune "${machines[@]}" "${sbatch_options[@]}" "${sbatch_tune[@]}" "$here/tune.sbatch" "$run_dir/plan.h5" "$data" \
    "$trained" --profile "$run_dir/profile.h5" --device "$device" --trials "$tune" --anew "${option_tune[@]}"
fi
submit train "${machines[@]}" --time="$time" "${sbatch_options[@]}" "${sbatch_train[@]}" \
  "$here/train.sbatch" "$trained" "$data" "$run_dir" --device "$device" ${steps:+--steps "$steps"} "${option_train[@]}"
