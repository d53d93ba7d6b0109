#!/bin/bash
# When one rank is killed, all others leave within a minute and the job fails.
# shellcheck source-path=SCRIPTDIR source=jobs.sh
. "$(dirname "$0")/jobs.sh"

start_training run
job=${jobs[0]}
expect "four ranks run" test "$(ranks "$job" | wc -l)" = 4
kill -KILL "$(ranks "$job" 3)"
wait_until 60 "all ranks leave within a minute" has_no_ranks "$job"
wait_until 60 "the job ends" has_ended "$job"
expect "the job fails" is_in_state "$job" FAILED
expect "it is not put back in the queue" has_restarted "$job" 0
