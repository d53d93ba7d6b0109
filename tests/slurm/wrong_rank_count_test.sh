#!/bin/bash
# A plan for four ranks started on three is refused with exit code 5 and a hint, before anything is trained.
# shellcheck source-path=SCRIPTDIR source=jobs.sh
. "$(dirname "$0")/jobs.sh"

code=0
timeout 120 srun --mpi=pmi2 --kill-on-bad-exit=1 --nodes=1 --ntasks=3 \
  "$ALPA_BIN/alpa-train" "$plan" --data "$data" --run-dir run >log 2>&1 || code=$?
cat log
expect "exit code 5" test "$code" = 5
expect "the message has both counts" grep -Eq '\b4\b.*\b3\b' log
expect "the message has a hint" grep -q '^ *try: .*4' log
expect "nothing is trained" test ! -e run/metrics.jsonl
