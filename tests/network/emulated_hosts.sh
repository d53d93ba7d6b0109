#!/usr/bin/env bash
# Runs an MPI program on emulated hosts: network namespaces joined by a switch, each by a link of a given rate in both
# directions. Needs no root; all of it is gone when the program ends. Ranks of one host share memory, ranks of different hosts
# have only the network.
#   emulated_hosts.sh MBIT HOSTS RANKS_ON_HOST PROGRAM [ARG...]        e.g.  emulated_hosts.sh 200 2 2 ./test
# MBIT is the rate in Mbit/s, or none. Ends with 77 and says why where hosts cannot be emulated. Environment: MPIEXEC (mpiexec),
# PRELOAD (a library for the ranks), SLOW_HOST (HOST:MBIT, one of another rate), NICS (1: links of a host, of as many ranks each).
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,8p' "$0" >&2; exit 2; }

if [ -z "${EMULATED_HOSTS_INSIDE:-}" ]; then
  for tool in unshare nsenter ip tc; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool here (util-linux, iproute2)"; exit 77; }
  done
  namespaces=(unshare --user --map-root-user --net --mount --pid --fork --mount-proc --kill-child)
  "${namespaces[@]}" sh -c 'mount -t tmpfs none /run && ip link add veth0 type veth peer name veth1 && tc qdisc add dev veth0 root tbf rate 1gbit burst 64kb latency 5ms' \
    2>/dev/null || { echo "skipped: this machine lets its users make no network namespaces with shaped links"; exit 77; }
  EMULATED_HOSTS_INSIDE=1 exec "${namespaces[@]}" "$0" "$@"
fi
mbit=$1 hosts=$2 ranks=$3 nics=${NICS:-1} slow_host=${SLOW_HOST:-none:}
shift 3
# An idle link saves up the right to send so much at once, which no real one does and which hides messages behind computations.
# So it is little, in short pieces (the kernel hands down 64 KiB otherwise): a quarter of a millisecond. But the more ranks keep
# the cores busy the later the kernel looks at a link, and what it has not saved up by then is lost.
burst_kb=$(((hosts * ranks - 1) * ${mbit/none/1000} / 32))
((burst_kb > 16)) || burst_kb=16
mount -t tmpfs none /run
mkdir /run/netns

shape() { # host, namespace, device, what may wait
  [ "$mbit" != none ] || return 0
  local rate=$mbit
  [ "$1" != "${slow_host%%:*}" ] || rate=${slow_host##*:}
  ip -n "$2" link set "$3" gso_max_size $((1024 * (burst_kb < 192 ? burst_kb / 3 : 64)))
  tc -n "$2" qdisc add dev "$3" root tbf rate "${rate}mbit" burst ${burst_kb}kb $4 $5
}

ip netns add switch
ip -n switch link set lo up
ip -n switch link add ports type bridge stp_state 0 forward_delay 0
ip -n switch address add 10.77.255.254/16 dev ports
ip -n switch link set ports up
list=
mkdir /run/ipc
for ((h = 0; h < hosts * nics; ++h)); do # each link of a host is a network namespace, and the host itself one of IPC
  ((h % nics)) || { touch /run/ipc/$((h / nics)) && unshare --ipc=/run/ipc/$((h / nics)) true; }
  ln -s $((h / nics)) "/run/ipc/host$h"
  ip netns add "host$h"
  ip link add eth0 netns "host$h" type veth peer name "port$h" netns switch
  ip -n "host$h" link set lo up
  ip -n "host$h" address add "10.77.$((h / 250)).$((h % 250 + 1))/16" dev eth0
  ip -n "host$h" link set eth0 up
  ip -n switch link set "port$h" master ports up
  # Every kernel lets its users have this one; with bbr, some machines' own, several connections share a short queue badly.
  ip netns exec "host$h" sysctl -qw net.ipv4.tcp_congestion_control=reno
  # A host keeps what it cannot send yet (1000 packets, as Linux does), a port of a switch drops it. With 5 ms on hosts too,
  # some kernels drop there what programs hand down at once, and all-to-alls of 8 ranks take twice as long.
  shape $((h / nics)) "host$h" eth0 limit 1500kb
  shape $((h / nics)) switch "port$h" latency 5ms
  list+=${list:+,}host$h:$((ranks / nics))
done

# The launcher of MPICH calls this as it would call ssh: [-option...] HOST COMMAND... The IPC namespace decides who shares
# memory.
cat >/run/remote <<'EOF'
#!/bin/bash
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec nsenter --net=/run/netns/"$host" --ipc=/run/ipc/"$host" unshare --uts sh -c "hostname $host; exec $*"
EOF
chmod +x /run/remote
[ -z "${PRELOAD:-}" ] || export LD_PRELOAD=$PRELOAD
exec nsenter --net=/run/netns/switch "${MPIEXEC:-mpiexec}" -launcher ssh -launcher-exec /run/remote -iface ports \
  -hosts "$list" -n $((hosts * ranks)) "$@"
