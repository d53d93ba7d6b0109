#!/bin/bash
# When one rank is frozen, the others name it and end the whole job, the frozen rank too.
# shellcheck source-path=SCRIPTDIR source=jobs.sh
. "$(dirname "$0")/jobs.sh"

start_training run --hang-timeout 5 --file-timeout 5
job=${jobs[0]}
kill -STOP "$(ranks "$job" 3)"
wait_until 60 "all ranks leave within a minute" has_no_ranks "$job"
wait_until 60 "the job ends" has_ended "$job"
expect "the job fails" is_in_state "$job" FAILED
expect "the frozen rank is named" grep -q "error: waiting for .*rank 3 on" "$work"/*.out
expect "it is not put back in the queue" has_restarted "$job" 0
