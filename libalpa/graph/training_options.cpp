#include "libalpa/graph/training_options.h"

#include "libalpa/base/limits.h"
#include "libalpa/base/options.h"

namespace alpa {

DType float_type(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return DType::f32;
    case Precision::bf16:
      return DType::bf16;
    case Precision::f16:
      return DType::f16;
  }
  return DType::f32;
}

std::string kept_options(TrainingOptions options) {
  options.pad_to = options.pad_heads_to = 0;
  return options_text(options);
}

void describe(TrainingOptions& o, OptionsVisitor& visit) {
  visit.field("batch", o.batch, "samples per step, over all ranks", between(1, kMostSamples));
  visit.field("sequence", o.sequence, "tokens per sample; models know it as the dimension 'sequence'",
              between(1, kMostSamples));
  visit.field(
      "group_samples", o.group_samples,
      "samples that batch norms or experts take together, a micro-batch being a whole number of such groups; "
      "models know it as the dimension 'group_samples'",
      between(1, kMostSamples));
  visit.field("objective", o.objective, "what the model is asked to predict",
              {{"next_token", Objective::next_token, "each token from those before it"},
               {"masked", Objective::masked, "tokens that were hidden from it"}});
  visit.field("mask_token", o.mask_token,
              "masked: id that stands for a hidden token; -1 for the last id of the vocabulary",
              between(-1, kMostIds - 1));
  visit.field("document_end", o.document_end,
              "id behind each document, as convert writes it; causal attention then sees nothing of the "
              "documents before; -1: of all that comes before in its sequence",
              between(-1, kMostIds - 1));
  visit.field("precision", o.precision, "type of weights and activations",
              {{"f32", Precision::f32, "32-bit floats throughout"},
               {"bf16", Precision::bf16, "bf16 with f32 master weights and f32 accumulation"},
               {"f16", Precision::f16, "f16 likewise, with dynamic loss scaling; GPUs only"}});
  visit.field(
      "loss_scale", o.loss_scale,
      "f16: factor of the gradients' seed at the start; halved, and the step's update left out, where "
      "they overflow",
      between(1, kMostNumber));
  visit.field("loss_scale_steps", o.loss_scale_steps,
              "f16: steps without overflow after which the factor is doubled", between(1, kMostSteps));
  visit.field("gradient_sum", o.gradient_sum, "type in which gradients of micro-batches are summed",
              {{"f32", GradientSum::f32, "32-bit floats"},
               {"parameters", GradientSum::parameters,
                "that of the weights: with adamw in 16 bits 16 bytes a parameter in place of 18; each "
                "micro-batch rounds the sum"}});
  visit.field(
      "gradient_wire", o.gradient_wire, "type in which devices send gradients to each other and add them up",
      {{"sum", GradientWire::sum, "that in which micro-batches are summed"},
       {"bf16", GradientWire::bf16,
        "bf16, half of the bytes of f32: each device rounds its term, and so does each addition; what goes "
        "from stage to stage, as of tied weights, stays as it is"}});
  visit.field(
      "gradient_compression", o.gradient_compression, "what devices send of their gradients",
      {{"none", GradientCompression::none, "all of them"},
       {"powersgd", GradientCompression::powersgd,
        "of each matrix two thin ones of which it is nearly the product, where they have at most half of its "
        "elements; what that leaves out is added to the next step's gradient; takes f32 sums, not f16"}});
  visit.field("compression_rank", o.compression_rank, "powersgd: columns of the thin matrices",
              between(1, kMostRank));
  visit.field("gradient_delay", o.gradient_delay,
              "updates go by the gradients of so many steps before, which devices add up meanwhile, and so "
              "does the norm that is reported; 0 in the first steps; not f16",
              between(0, kMostDelay));
  visit.field("embedding_gradients", o.embedding_gradients,
              "gradients of tables that embeddings alone look up",
              {{"dense", EmbeddingGradients::dense, "of all rows, zeros where no id of a micro-batch is"},
               {"sparse", EmbeddingGradients::sparse,
                "each device adds up its rows by id, and where a plan gathers rather than sums them it sends "
                "a row for "
                "each id that it has, in f32; takes f32 sums, not f16; CPUs only"}});
  visit.field(
      "distinct_ids", o.distinct_ids,
      "sparse: expected share of the ids of a device and micro-batch that differ, for predictions; it "
      "falls with their number; 0: that of ids drawn uniformly, each for itself; alpa-train prints what "
      "it was where rows are gathered",
      between(0, 1));
  visit.field("optimizer", o.optimizer, "how gradients change the weights",
              {{"adamw", OptimizerKind::adamw, "Adam with decoupled weight decay"},
               {"adafactor", OptimizerKind::adafactor,
                "mean squares of gradients by rows and columns alone, steps relative to the weights: the "
                "learning rate is that of a weight of 1"},
               {"sgd", OptimizerKind::sgd, "gradient descent with momentum"}});
  visit.field("learning_rate", o.learning_rate, "peak learning rate", between(kLeastNumber, kMostNumber));
  visit.field("beta1", o.beta1, "adamw: decay per step of the mean of gradients", between(0, kNearlyOne));
  visit.field("beta2", o.beta2, "adamw: decay per step of the mean of squared gradients",
              between(0, kNearlyOne));
  visit.field("epsilon", o.epsilon, "adamw: added to the root of the mean of squares",
              between(kLeastNumber, 1));
  visit.field("weight_decay", o.weight_decay,
              "decay of weights with two or more dimensions, times the learning rate",
              between(0, kMostNumber));
  visit.field("momentum", o.momentum, "sgd: decay per step of the velocity", between(0, kNearlyOne));
  visit.field("nesterov", o.nesterov, "sgd: step along the velocity as it will be after one more decay");
  visit.field("gradient_clip", o.gradient_clip, "bound on the global norm of the gradient; 0 for none",
              between(0, kMostNumber));
  visit.field(
      "schedule", o.schedule, "learning-rate schedule after the warm-up",
      {{"constant", LearningRateSchedule::constant, "the peak at every step"},
       {"cosine", LearningRateSchedule::cosine, "half a cosine from the peak down to the final rate"},
       {"linear", LearningRateSchedule::linear, "a straight line from the peak down to the final rate"}});
  visit.field("warmup_steps", o.warmup_steps, "steps over which the learning rate rises from 0 to its peak",
              between(0, kMostSteps));
  visit.field("decay_steps", o.decay_steps,
              "last steps of the schedule, over which the learning rate falls, at its peak until then "
              "(warm-up, stable, decay); 0: all after the warm-up",
              between(0, kMostSteps));
  visit.field("steps", o.steps, "training steps of the whole run; the schedule ends there",
              between(1, kMostSteps));
  visit.field("final_learning_rate", o.final_learning_rate, "fraction of the peak left at the last step",
              between(0, 1));
  visit.field("seed", o.seed, "of weights, dropout and the order of the data", at_least(0));
  visit.field(
      "pad_to", o.pad_to,
      "rows of a vocabulary's tables are rounded up to a multiple of this, with rows of zeros that count for "
      "nothing, "
      "so that they can be split evenly; 1 for none, 0 for what alpa-plan finds faster; not with adafactor",
      between(0, kMostPadding));
  visit.field("pad_heads_to", o.pad_heads_to,
              "heads of attention are rounded up to a multiple of this likewise, with heads of zeros",
              between(0, kMostPadding));
}

}  // namespace alpa
