#!/usr/bin/env bash
# Builds and tests everything: all tests in dev, the numerical ones with the least vector instructions too, the unit tests
# under the sanitizers (in sanitize bad input to whole commands too, in tsan those that run threads), and the CUDA backend
# where nvcc is found. Sets up everything it needs. With CI=true the other three take turns beside dev, one each day, and of
# what the sanitizers test a third, the next one three days later; the least vector instructions come on the days of CUDA; of
# what comes in eight shards and takes longest (labels slow and every_model) one is run, the next one a day later; and
# hundreds of planned cases (label many) and, under AddressSanitizer, two modules are left out: they take as long as the rest.
#   scripts/test.sh [dev|sanitize|tsan|cuda ...]      (default: these four, with CI=true dev and one of the others)
#   scripts/test.sh o0 clang lto                      (every target by other compilers and flags, and the unit tests)
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/scripts/setup.sh"
cd "$here"
jobs=$(nproc)
wanted=("$@")
others=(sanitize tsan cuda)
day=$((10#$(date +%j)))
[ "${CI:-}" != true ] || others=("${others[day % 3]}")
[ ${#wanted[@]} -gt 0 ] || wanted=(dev "${others[@]}")
passed=0 skipped=0 again=()
left_out=()
[ "${CI:-}" != true ] || left_out=(-LE many -E "\.(slow|every_model)\.[^$((day % 8))]$")
threaded=(base comm emulated_nccl device planner profiler solver runtime checkpoint trainer)  # what ThreadSanitizer has something to see in
sanitized=(base h5 device comm graph ops kernels cluster schedule weights solver dataset model sharding semantics plan profiler
  program calibration report runtime checkpoint trainer emulated_nccl planner emulated_kernels)
if [ "${CI:-}" = true ]; then
  third() { for ((i = day / 3 % 3; i < $#; i += 3)); do echo "${@:i+1:1}"; done; }
  mapfile -t threaded < <(third "${threaded[@]}")
  mapfile -t sanitized < <(third "${sanitized[@]::${#sanitized[@]}-2}")
fi

for preset in "${wanted[@]}"; do
  echo "== $preset, after $((SECONDS / 60)) minutes"
  if [ "$preset" = cuda ] && ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ]; then
    echo "skipped: no nvcc on this machine"
    continue
  fi
  options=(-DALPA_TESTS_IN_SHARDS=ON)
  # What is built once need not be built in parts, and who looks for a line of a crash has it in a build of their own.
  [ "${CI:-}" != true ] || options+=(-DCMAKE_UNITY_BUILD=ON)
  [ "${CI:-}:$preset" != true:dev ] || options+=(-DCMAKE_CXX_FLAGS=-O1)
  # What is compiled to see that it compiles, and run by no GPU here, need not be fast.
  [ "${CI:-}:$preset" != true:cuda ] || options+=(-DCMAKE_CXX_FLAGS_RELEASE=-O0)
  cmake --preset "$preset" "${options[@]}" >/dev/null
  case $preset in
    sanitize) targets=("${sanitized[@]/#/test_}" test_commands) ;;
    tsan) targets=("${threaded[@]/#/test_}") ;;
    cuda) targets=(gpu) ;;         # the other programs are those of dev
    *) targets=(all) ;;
  esac
  cmake --build --preset "$preset" --target "${targets[@]}" -- -j"$jobs"
  echo "== $preset is built, after $((SECONDS / 60)) minutes"
  tested=(ctest --preset "$preset" -j"$jobs" --output-junit "$here/build/$preset/tests.xml")
  case $preset in
    # Jobs and ranks that leave together wait more than they work, so two tests more may run; a starved machine may fail one
    # once.
    dev) "${tested[@]}" -j$((jobs + 2)) --repeat until-pass:2 "${left_out[@]}" ;;
    sanitize) "${tested[@]}" -L 'unit|bad_input' -R "^($(IFS='|' && echo "${sanitized[*]}"))\.|^commands\." ;;
    o0 | clang | lto) "${tested[@]}" -L unit ;;
    tsan) "${tested[@]}" -L unit -R "^($(IFS='|' && echo "${threaded[*]}"))\." ;;
    cuda) "${tested[@]}" -L gpu -V ;;  # says why tests skip where there is no GPU
  esac
  count() { grep -om1 "$1=\"[0-9]*\"" "build/$preset/tests.xml" | tr -dc 0-9; }
  log=build/$preset/Testing/Temporary/LastTest.log  # a test that was started twice failed once
  mapfile -t -O ${#again[@]} again < <(sed -n 's/^"\(.*\)" start time: .*/\1/p' "$log" | sort | uniq -d)
  skips=$(($(count skipped) + $(count disabled)))
  passed=$((passed + $(count tests) - $(count failures) - skips))
  skipped=$((skipped + skips))
  # Once more with the least vector instructions; the run before took the most that this processor has.
  if [ "$preset" = dev ] && { [ "${CI:-}" != true ] || [ "${others[*]}" = cuda ]; }; then
    scripts/instruction_sets.sh lowest
  fi
done
passed+=' passed'
[ ${#again[@]} = 0 ] || passed+=" (${#again[@]} at the second attempt: ${again[*]})"
echo "$passed, 0 failed, $skipped skipped"  # a failure has ended this script
