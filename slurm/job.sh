# What the job scripts of this folder share. They read it as
#
#   . job.sh NAME.sbatch
#
# from share/alpa/slurm beside the folder of the commands, as a job runs a copy of its script, from a folder of Slurm's own.
#
# ALPA_MPI             how srun and the commands' MPI find each other (srun --mpi), pmi2 where not set; `srun --mpi=list` has what
#                      there is. The MPI that the commands are built with says what it takes: MPICH pmi2, some also pmix
# ALPA_MAX_REQUEUES    how often a job puts itself back in the queue (10)
# shellcheck shell=bash
job_script=$1

refuse_job() { # exit code, message
  printf '%s: error: %s\n' "$job_script" "$2" >&2
  exit "$1"
}

# srun of Slurm 22.05 and later does not take this over from the job by itself.
[[ -z ${SLURM_CPUS_PER_TASK:-} ]] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# The words that srun offers for --mpi here, one a line.
mpi_types() {
  srun --mpi=list 2>&1 | sed -n 's/.* available: //; s/^[[:space:]]*\([a-z0-9_, ]\+\)$/\1/p' | tr -s ', ' '\n'
}

# Refuses what Slurm would refuse, with what it offers; where that is not known, srun has to say it.
check_mpi() {
  local offered
  offered=$(mpi_types) || true
  [[ -z $offered ]] || grep -qxF "${ALPA_MPI:-pmi2}" <<<"$offered" ||
    refuse_job 2 "Slurm has no MPI type '${ALPA_MPI:-pmi2}' here, expected one of: ${offered//$'\n'/ }
  try: ALPA_MPI=TYPE in the environment that submits, with one that the MPI of the commands takes (alpa-train --version)"
}

# Runs a command on all ranks of the job.
launch() {
  check_mpi
  srun --mpi="${ALPA_MPI:-pmi2}" --kill-on-bad-exit=1 "$@"
}

# The end of the job in seconds since 1970. Newer Slurm reports it; 22.05 has to be asked, and names none for a job without a
# limit.
job_end() {
  local end=${SLURM_JOB_END_TIME:-}
  if [[ -z $end ]]; then
    end=$(squeue -h -j "$SLURM_JOB_ID" -o %e)
    [[ -z $end ]] || end=$(date -d "$end" +%s 2>/dev/null)
  fi
  echo "$end"
}

# Ends the job with the exit code of its command; one that stopped early (75) is put back in the queue, unless there is a file
# that asked for the stop or that was done as often as it may be.
end_job() { # exit code, what there is, file
  local code=$1 restarts=${SLURM_RESTART_COUNT:-0} most=${ALPA_MAX_REQUEUES:-10}
  # The id of an array's last task is that of the whole array too.
  local job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
  if ((code != 75)); then
    exit "$code"
  elif [[ -n ${3:-} && -e $3 ]]; then
    echo "$job_script: stopped by $3; remove it and submit again to go on"
  elif ((restarts >= most)); then
    echo "$job_script: stopped early after $restarts requeues, the most allowed; submit again to go on"
  elif scontrol requeue "${job:-$SLURM_JOB_ID}"; then
    echo "$job_script: stopped early with $2; requeued ($((restarts + 1)) of at most $most)"
  fi
  exit "$code"
}
