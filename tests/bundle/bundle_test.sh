#!/usr/bin/env bash
# A bundle is unpacked in a folder that holds glibc, libstdc++ and a shell besides, and plans and trains on two ranks there.
#   bundle_test.sh SCRIPTS BUILD
set -euo pipefail
scripts=$1 build=$2
skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "only root can change the root folder"
command -v patchelf >/dev/null || skip "no patchelf on this machine"

work=$(mktemp -d)
trap 'umount "$work/bare/proc" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
"$scripts/bundle.sh" "$build" "$work/alpa.tar"
bare=$work/bare
mkdir -p "$bare"/{opt/elsewhere,lib,lib64,bin,tmp,dev/shm,proc}
for library in libc.so.6 libm.so.6 libdl.so.2 librt.so.1 libpthread.so.0 libresolv.so.2 libstdc++.so.6 libgcc_s.so.1 libtinfo.so.6; do
  cp -L "/lib/x86_64-linux-gnu/$library" "$bare/lib"
done
cp -L /lib64/ld-linux-x86-64.so.2 "$bare/lib64"
cp -L /bin/bash "$bare/bin/sh"
for device in null zero urandom; do cp -a "/dev/$device" "$bare/dev"; done
mount --bind /proc "$bare/proc" 2>/dev/null || skip "mounting is not allowed here"  # the loader finds $ORIGIN there
tar -C "$bare/opt/elsewhere" -xf "$work/alpa.tar"

chroot "$bare" /bin/sh -c '
  set -e
  cd /opt/elsewhere/alpa
  bin/alpa-plan tests/data/tiny_gpt.toml --cluster configs/clusters/local-2.toml --method data-parallel --out /tmp/plan.h5
  bin/mpiexec -n 2 bin/alpa-train /tmp/plan.h5 --data synthetic:64 --run-dir /tmp/run --threads 1'
grep -q '"step":20,' "$bare/tmp/run/metrics.jsonl"
