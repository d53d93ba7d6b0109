#!/usr/bin/env bash
# Installs the Debian packages the suite is built and tested with; does nothing where they are there. Sourced by demo.sh
# and test.sh. Without root and sudo it lists what is missing and stops.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config git procps
  libmpich-dev mpich                      # MPI: bootstrap, collectives of CPU ranks
  libhdf5-mpich-dev hdf5-tools            # profiles, plans, checkpoints
  coinor-libcbc-dev                       # integer programs
  libcli11-dev libfmt-dev libspdlog-dev   # command lines, text, log
  libtomlplusplus-dev nlohmann-json3-dev  # models; metrics and traces
  libxxhash-dev libdnnl-dev               # fingerprints; matrix products on CPUs
  libjemalloc-dev                         # the allocator of alpa-plan
  zlib1g-dev                              # data sets come compressed
  libpng-dev libturbojpeg0-dev            # images to train on
  libpcre2-dev libutf8proc-dev            # tokenizers
  libsentencepiece-dev                    # those of SentencePiece; the build does without
  libgtest-dev libgmock-dev               # tests
  slurmctld slurmd slurm-client munge     # tests on a real cluster
  mandoc                                  # looks through the manual pages
  environment-modules                     # loads the module of an installed tree
  iproute2                                # tests on emulated hosts: networks of a given rate
  python3-sklearn                         # the digits that a test trains on; some 15 MB with what it needs
  chromium-headless-shell                 # reads the page of a plan; some 100 MB to fetch
  patchelf xz-utils                       # scripts/bundle.sh
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ]; then root=(); elif command -v sudo >/dev/null; then root=(sudo); else
    echo "These Debian packages are missing, and neither root nor sudo is at hand to install them:" >&2
    echo "  ${missing[*]}" >&2
    exit 3
  fi
  echo "installing ${#missing[@]} Debian packages: ${missing[*]}"
  ${root[@]+"${root[@]}"} apt-get update -qq
  # Daemons of slurm and munge must not start here; the tests boot their own.
  DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 ${root[@]+"${root[@]}"} apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
