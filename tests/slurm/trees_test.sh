#!/bin/bash
# A Tree-LSTM trains on two nodes; a rank is killed, and the run that goes on from its checkpoint ends with the bits of one
# that was never interrupted, having learnt what is planted in the labels.
# shellcheck source-path=SCRIPTDIR source=jobs.sh
. "$(dirname "$0")/jobs.sh"

data=synthetic-trees:4000
write_three_nodes
cat >trees.toml <<TOML
base = "$source/configs/models/tree-lstm.toml"
name = "trees"
[graphs]
vocabulary = "vocabulary"
classes = "classes"
children = "children"
vertices = 56
[dimensions]
embedding = 24
hidden = 24
[training]
batch = 64
learning_rate = 1e-2
warmup_steps = 5
steps = 600
TOML
"$ALPA_BIN/alpa-plan" trees.toml --cluster cluster.toml --devices 2 --method data-parallel --data "$data" --out trees.h5 >>log
options=(--steps 600 --checkpoint-every 100 --evaluate-every 600 --threads 1)

submit() {
  jobs+=("$(sbatch --parsable --nodes=2 --ntasks-per-node=1 --time=10 --output="$work/%x.%j.out" \
    "$source/slurm/train.sbatch" trees.h5 "$data" killed "${options[@]}")")
}

expect "a run trains to its end" train_on_nodes 2 trees.h5 whole "${options[@]:1}"

mkdir killed
submit
# It is written beside training, on a slow disk for many steps.
has_checkpoint() { compgen -G "killed/checkpoints/step-*00.h5" >/dev/null; }
wait_until 120 "the first checkpoint is there" has_checkpoint
kill -KILL "$(ranks "${jobs[0]}" 1)"
wait_until 60 "the job ends" has_ended "${jobs[0]}"
expect "the job fails" is_in_state "${jobs[0]}" FAILED
submit
wait_until 120 "the run that goes on ends" has_ended "${jobs[1]}"
expect "well" is_in_state "${jobs[1]}" COMPLETED
expect "it went on from a checkpoint" grep -Eq 'resuming from step [1-5]00' "alpa-train.${jobs[1]}.out"
expect "each step is logged once" has_consecutive_steps killed
expect "losses are the same" diff <(losses whole) <(losses killed)
expect "checkpoints have the same bits" \
  h5diff --exclude-path /provenance whole/checkpoints/step-00000600.h5 killed/checkpoints/step-00000600.h5

# Of the planted labels most are the third of five: 69 %. Chance has 20 %.
accuracy=$(grep -oP 'step 600: held-out loss .* accuracy \K\S+' "alpa-train.${jobs[1]}.out")
echo "accuracy $accuracy on held-out trees; the commonest label has 0.69, chance 0.2"
expect "more is learnt than which label is the commonest" awk "BEGIN { exit !($accuracy > 0.75) }"
