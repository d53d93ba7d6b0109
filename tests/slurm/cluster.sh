#!/bin/bash
# A Slurm cluster of one's own on this machine, for tests: munge, slurmctld and several slurmd with their own key,
# ports and files under one folder. Needs neither root nor systemd nor cgroups; touches nothing outside DIR.
#
#   cluster.sh up DIR [-n NODES] [-c CPUS_PER_NODE]    starts it, and returns once all nodes are idle (default: 2 of 4)
#   cluster.sh down DIR                                stops all that runs in it and removes DIR; fine when it is not up
#
# Clients reach it with SLURM_CONF=DIR/slurm.conf. DIR must be short: paths of unix sockets end at 107 characters.
# Exit codes: 77 where Slurm is not installed, 1 where the cluster does not come up (with the ends of its logs).
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
command=${1:-} dir=$(realpath -m "${2:?usage: cluster.sh up|down DIR [-n NODES] [-c CPUS_PER_NODE]}")
shift 2
export SLURM_CONF=$dir/slurm.conf
nodes=2 cpus=4

say() { printf 'cluster.sh: %s\n' "$*" >&2; }

# A process that has ended but that nobody has waited for yet still answers "kill -0"; it counts as gone.
runs() {
  local stat
  stat=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) && [[ -n $stat && $stat != Z* ]]
}

is_cluster() { [[ -s $dir/munge.key ]]; }

require_packages() {
  local program
  for program in munged slurmctld slurmd srun sbatch; do
    command -v "$program" >/dev/null && continue
    echo "skipped: $program is not installed (apt-get install slurmctld slurmd slurm-client munge)"
    exit 77
  done
}

# The first port of a range that is free on this machine, below those that the kernel hands out by itself.
free_ports() {
  local base port
  for base in $(seq 12000 64 31900 | shuf); do
    for ((port = base; port <= base + $1; port++)); do
      (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue 2
    done
    echo "$base"
    return
  done
  say "no free range of $1 ports"
  return 1
}

write_configuration() { # first port
  local me host node
  me=$(id -un) host=$(hostname -s)
  # cgroup/v1 is the one plugin of 22.05 that asks for nothing to be mounted; it loads one even if none is used.
  echo "CgroupPlugin=cgroup/v1" >"$dir/cgroup.conf"
  cat >"$dir/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$1
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
CredType=cred/munge
# A requeued job waits until its old credential has expired: 120 s by default.
AuthInfo=socket=$dir/munge.sock,cred_expire=5
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
# Believe CPUs= below, not the machine.
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=15
UnkillableStepTimeout=30
# A busy machine answers late.
MessageTimeout=60
TCPTimeout=30
# Finished jobs stay in "scontrol show job", so that tests can ask for their exit codes.
MinJobAge=3600
CONF
  for ((node = 1; node <= nodes; node++)); do
    echo "NodeName=node$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$(($1 + node)) CPUs=$cpus Boards=1" \
         "SocketsPerBoard=1 CoresPerSocket=$cpus ThreadsPerCore=1 RealMemory=4000"
  done >>"$dir/slurm.conf"
  echo "PartitionName=batch Nodes=ALL Default=YES DefaultTime=60 State=UP" >>"$dir/slurm.conf"
}

wait_until_idle() {
  local attempt
  for ((attempt = 0; attempt < 1200; attempt++)); do
    [[ $(sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l) == "$nodes" ]] && return
    sleep 0.1
  done
  say "the nodes are not idle after two minutes"
  return 1
}

up() {
  require_packages
  ((${#dir} < 80)) || { say "'$dir' is too long a path for a socket"; exit 1; }
  if [[ -n $(ls -A "$dir" 2>/dev/null) ]]; then
    is_cluster || { say "'$dir' holds something else"; exit 1; }
    down
  fi
  mkdir -p "$dir"/{log,state,spool}
  trap 'tail -n 5 "$dir"/log/*.log >&2; down' EXIT
  # Two clusters that start at once must not choose the same ports.
  exec 9>"${TMPDIR:-/tmp}/alpa-test-cluster.$(id -u).lock"
  flock 9
  (umask 077 && head -c 128 /dev/urandom >"$dir/munge.key")
  munged --force --key-file="$dir/munge.key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" \
    --log-file="$dir/log/munged.log" --seed-file="$dir/state/munged.seed" 9>&-
  write_configuration "$(free_ports "$nodes")"
  slurmctld -c 9>&-
  for ((node = 1; node <= nodes; node++)); do
    mkdir -p "$dir/spool/node$node"
    slurmd -N "node$node" 9>&-
  done
  flock -u 9
  wait_until_idle
  trap - EXIT
}

# The daemons that "up" started; a pid file may outlive its process and name another.
daemons() {
  local file pid
  for file in "$dir"/{slurmctld,slurmd.*,munged}.pid; do
    pid=$(cat "$file" 2>/dev/null) || continue
    case $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) in *slurmctld* | *slurmd* | *munged*) echo "$pid" ;; esac
  done
}

# What outlives the daemons: tasks and waiting srun carry our SLURM_CONF, each slurmstepd holds its slurmd's log open.
leftovers() {
  local files file pid
  mapfile -t files < <(grep -lzsxF "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ)
  for file in "${files[@]}"; do
    pid=${file//[^0-9]/}
    if grep -qzs '^SLURM_JOB_USER=' "$file" || [[ $(cat "/proc/$pid/comm" 2>/dev/null) == srun ]]; then echo "$pid"; fi
  done
  for pid in $(pgrep -x slurmstepd); do
    ! readlink "/proc/$pid/fd/"* 2>/dev/null | grep -qF "$dir/log/slurmd." || echo "$pid"
  done
}

down() {
  local started pid attempt
  trap - EXIT
  mapfile -t started < <(daemons)
  for pid in "${started[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  for pid in $(leftovers); do kill -KILL "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do
    for ((attempt = 0; attempt < 200; attempt++)); do
      runs "$pid" || continue 2
      sleep 0.05
    done
    say "process $pid does not end; killed"
    kill -KILL "$pid" 2>/dev/null || true
  done
  ! is_cluster || rm -rf "$dir"
}

while getopts n:c: option; do
  case $option in
    n) nodes=$OPTARG ;;
    c) cpus=$OPTARG ;;
    *) exit 2 ;;
  esac
done
case $command in
  up | down) "$command" ;;
  *) say "expected up or down, got '$command'" && exit 2 ;;
esac
