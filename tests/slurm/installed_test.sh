#!/bin/bash
# The suite, installed and moved, profiles, plans and trains the demonstration's model as jobs of a cluster of its own, by its
# module, where neither sources nor build are to be seen: all of it, the cluster's daemons too, runs in a mount namespace in
# which they are empty.
#
#   installed_test.sh PREFIX CLUSTER SOURCE BUILD      CLUSTER: folder to boot the cluster in; it is removed
set -euo pipefail
if [[ ${1:-} != --inside ]]; then
  prefix=$(realpath "$1") cluster=$2 source=$(realpath "$3") build=$(realpath "$4")
  skip() {
    echo "skipped: $1"
    exit 77
  }
  command -v modulecmd >/dev/null || skip "modulecmd is not installed (apt-get install environment-modules)"
  command -v slurmctld >/dev/null || skip "slurmctld is not installed (apt-get install slurmctld slurmd slurm-client munge)"
  unshare --mount true 2>/dev/null || skip "mount namespaces are not allowed here (unshare --mount), so the sources cannot be hidden"
  work=$(mktemp -d)
  trap 'rm -rf "$work" "$cluster"' EXIT
  cp -r "$prefix" "$work/alpa"
  cp "$(dirname "$0")"/{cluster,installed_test}.sh "$work"
  cd "$work"
  unshare --mount "$work/installed_test.sh" --inside "$work/alpa" "$cluster" "$source" "$build"
  exit
fi

prefix=$2 cluster=$3 source=$4 build=$5
work=$PWD

fail() {
  echo "FAILED: $*"
  tail -n 30 "$work"/run/logs/*.out 2>/dev/null
  exit 1
}

mount -t tmpfs none "$source"
[[ ! -d $build ]] || mount -t tmpfs none "$build"
[[ -z $(ls -A "$source") && ! -e $build/bin ]] || fail "the sources are still there"

trap '"$work/cluster.sh" down "$cluster"' EXIT
"$work/cluster.sh" up "$cluster" -n 2 -c 2
export SLURM_CONF=$cluster/slurm.conf OMP_NUM_THREADS=1
unset ALPA_BIN

set +eu
# shellcheck source=/dev/null
. /usr/share/modules/init/bash
module use "$prefix/share/modulefiles"
module load alpa
set -eu
[[ $(command -v alpa-train) == "$prefix/bin/alpa-train" ]] || fail "the module does not put the commands on the PATH"

share=$ALPA_ROOT/share/alpa
chain=("$share/slurm/workflow.sh" --model "$share/configs/models/gpt-demo.toml" --data "$share/text/genesis.txt" --run-dir run
  --nodes 2 --ntasks-per-node 2 --time 10 --steps 3
  --option profile --repetitions=1 --option profile --time-budget=8 --option profile --micro-batch-samples=4
  --option plan --method=megatron --option plan --micro-batches=4 --sbatch plan --comment="the plan's own")
"${chain[@]}" >submitted || fail "the chain is not submitted"
last=$(sed -n 's/^train: job //p' submitted)
[[ $(scontrol show job -o "$(sed -n 's/^plan: job //p' submitted)") == *"Comment=the plan's own"* ]] || fail "an option of one job is lost"
state() { scontrol show job --oneliner "$last" | grep -oP '(?<=JobState=)\S*'; }
for ((i = 0; i < 400; i++)); do
  case $(state) in PENDING | CONFIGURING | RUNNING | COMPLETING | REQUEUED) sleep 0.2 ;; *) break ;; esac
done
[[ $(state) == COMPLETED ]] || fail "the chain ends as $(state)"
[[ $(grep -c '"step":' run/metrics.jsonl) == 3 ]] || fail "three steps are not trained"
if grep -rlF "$source" run/logs; then fail "the logs name the sources"; fi
