#!/usr/bin/env bash
# Packs a build and the libraries it needs into an archive that runs wherever it is unpacked, on machines that have neither
# MPICH nor HDF5:
#   scripts/bundle.sh [BUILD [ARCHIVE]]          (default: build/cuda alpa.tar.xz)
# An archive of more than 45 MiB is refused: where such archives are taken to, they travel with other files. One that is named
# .tar is not compressed, and may have any size.
# Left to the machine are glibc (2.34 or newer), libstdc++ (of g++ 12 or newer), and what belongs to a GPU: its driver,
# cuBLASLt and NCCL.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
build=$(realpath "${1:-$here/build/cuda}")
archive=$(realpath -m "${2:-alpa.tar.xz}")
fail() { echo "bundle.sh: error: $1" >&2; exit 3; }
[ -x "$build/bin/alpa-train" ] || fail "no build in '$build'; cmake --preset cuda && cmake --build --preset cuda"
command -v patchelf >/dev/null || fail "patchelf is missing; apt-get install patchelf"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/alpa
mkdir -p "$root"/{bin,lib,tests,scripts,licenses}

# What runs: the commands as they are installed, the launcher with its proxy, and what checks a GPU.
cmake --install "$build" --prefix "$root" >/dev/null
for program in test_gpu test_gpu_ranks bench_kernels; do
  [ ! -x "$build/bin/$program" ] || cp "$build/bin/$program" "$root/bin"
done
cp "$(command -v mpiexec.hydra)" "$root/bin/mpiexec"
cp "$(command -v hydra_pmi_proxy)" "$root/bin"

# The libraries of a program or library, but for those of the compiler and of glibc.
needed() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s)\.so'
}
# Transports of MPI, which UCX loads from a folder beside itself.
ucx=$(dirname "$(ldd "$root/bin/alpa-train" | awk '$1 ~ /^libucs\.so/ { print $3 }')")/ucx
transports=()
if [ -d "$ucx" ]; then
  mkdir "$root/lib/ucx"
  transports=("$ucx"/*.so.0)
  cp -L "${transports[@]}" "$root/lib/ucx"
fi
for library in $(needed "$root"/bin/* "${transports[@]}"); do
  cp -L "$library" "$root/lib"
  package=$(dpkg-query -S "*/$(basename "$(realpath "$library")")" 2>/dev/null | head -1 | cut -d: -f1) || continue
  [ ! -f "/usr/share/doc/$package/copyright" ] || cp -L "/usr/share/doc/$package/copyright" "$root/licenses/$package"
done
strip "$root"/bin/* 2>/dev/null || true
patchelf --set-rpath '$ORIGIN/../lib' "$root"/bin/*
for library in "$root"/lib/*.so*; do patchelf --set-rpath '$ORIGIN' "$library"; done
for transport in "$root"/lib/ucx/*; do patchelf --set-rpath '$ORIGIN:$ORIGIN/..' "$transport"; done

ln -s share/alpa/{configs,slurm} share/doc/alpa/README.md "$root"  # where README.md and tests/data have them
cp -r "$here/tests/data" "$root/tests"
cp "$here/scripts/gpu_check.sh" "$root/scripts"

compress=(xz -T0 -7) most_mib=45
if [[ $archive == *.tar ]]; then compress=(cat) most_mib=1000000; fi
tar -C "$work" --sort=name --owner=0 --group=0 -c alpa | "${compress[@]}" >"$archive.part"
mib=$(du -m "$archive.part" | cut -f1)
most_mib=${MOST_MIB:-$most_mib}
[ "$mib" -le "$most_mib" ] || { rm "$archive.part"; fail "the archive would have $mib MiB, more than $most_mib (MOST_MIB)"; }
mv "$archive.part" "$archive"
echo "$archive: $mib MiB, unpacks to alpa/ ($(du -sm "$root" | cut -f1) MiB)"
