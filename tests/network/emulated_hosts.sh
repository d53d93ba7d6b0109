#!/usr/bin/env bash
# Runs an MPI program on emulated hosts: network namespaces joined by a switch, each by a link of a given rate in both
# directions. Needs no root; all of it is gone when the program ends. Ranks of one host share memory, ranks of different hosts
# have only the network.
#   emulated_hosts.sh MBIT HOSTS RANKS_ON_HOST PROGRAM [ARG...]        e.g.  emulated_hosts.sh 200 2 2 ./test
# MBIT is the rate in Mbit/s, or none. Ends with 77 and says why where hosts cannot be emulated. Environment: MPIEXEC (mpiexec),
# PRELOAD (a library for the ranks).
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,7p' "$0" >&2; exit 2; }

if [ -z "${EMULATED_HOSTS_INSIDE:-}" ]; then
  for tool in unshare nsenter ip tc; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool here (util-linux, iproute2)"; exit 77; }
  done
  namespaces=(unshare --user --map-root-user --net --mount --pid --fork --mount-proc --kill-child)
  "${namespaces[@]}" sh -c 'mount -t tmpfs none /run && ip link add veth0 type veth peer name veth1 && tc qdisc add dev veth0 root tbf rate 1gbit burst 64kb latency 5ms' \
    2>/dev/null || { echo "skipped: this machine lets its users make no network namespaces with shaped links"; exit 77; }
  EMULATED_HOSTS_INSIDE=1 exec "${namespaces[@]}" "$0" "$@"
fi
mbit=$1 hosts=$2 ranks=$3
shift 3
# An idle link saves up the right to send so much at once, which no real one does and which hides messages behind computations.
# So it is little, in short pieces (the kernel hands down 64 KiB otherwise): a quarter of a millisecond. But the more ranks keep
# the cores busy the later the kernel looks at a link, and what it has not saved up by then is lost.
burst_kb=$(((hosts * ranks - 1) * ${mbit/none/1000} / 32))
((burst_kb > 16)) || burst_kb=16
mount -t tmpfs none /run
mkdir /run/netns

shape() { # namespace, device, what may wait
  [ "$mbit" != none ] || return 0
  ip -n "$1" link set "$2" gso_max_size $((1024 * (burst_kb < 192 ? burst_kb / 3 : 64)))
  tc -n "$1" qdisc add dev "$2" root tbf rate "${mbit}mbit" burst ${burst_kb}kb $3 $4
}

ip netns add switch
ip -n switch link set lo up
ip -n switch link add ports type bridge stp_state 0 forward_delay 0
ip -n switch address add 10.77.255.254/16 dev ports
ip -n switch link set ports up
list=
for ((h = 0; h < hosts; ++h)); do
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
  shape "host$h" eth0 limit 1500kb
  shape switch "port$h" latency 5ms
  list+=${list:+,}host$h:$ranks
done

# The launcher of MPICH calls this as it would call ssh: [-option...] HOST COMMAND... The IPC namespace decides who shares
# memory.
cat >/run/remote <<'EOF'
#!/bin/bash
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec nsenter --net=/run/netns/"$host" unshare --uts --ipc sh -c "hostname $host; exec $*"
EOF
chmod +x /run/remote
[ -z "${PRELOAD:-}" ] || export LD_PRELOAD=$PRELOAD
exec nsenter --net=/run/netns/switch "${MPIEXEC:-mpiexec}" -launcher ssh -launcher-exec /run/remote -iface ports \
  -hosts "$list" -n $((hosts * ranks)) "$@"
