#!/usr/bin/env bash
# Builds and tests everything: all tests in dev, the unit tests under the sanitizers (in sanitize bad input to whole
# commands too), and the CUDA backend where nvcc is found. Sets up everything it needs.
#   scripts/test.sh [dev|sanitize|tsan|cuda ...]      (default: all)
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/scripts/setup.sh"
cd "$here"
jobs=$(nproc)
wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || wanted=(dev sanitize tsan cuda)

for preset in "${wanted[@]}"; do
  echo "== $preset"
  if [ "$preset" = cuda ] && ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ]; then
    echo "skipped: no nvcc on this machine"
    continue
  fi
  cmake --preset "$preset" >/dev/null
  case $preset in
    tsan) targets=(unit_tests) ;;  # its tests are all that is run
    cuda) targets=(gpu) ;;         # the other programs are those of dev
    *) targets=(all) ;;
  esac
  cmake --build --preset "$preset" --target "${targets[@]}" -- -j"$jobs"
  case $preset in
    # Tests of how ranks leave together wait for each other in real time; a starved machine may fail one once.
    dev) ctest --preset dev -j"$jobs" --repeat until-pass:2 ;;
    sanitize) ctest --preset sanitize -L 'unit|bad_input' -j"$jobs" ;;
    tsan) ctest --preset tsan -L unit -j"$jobs" ;;
    cuda) ctest --preset cuda -L gpu -V ;;  # says why tests skip where there is no GPU
  esac
done
