#pragma once
#include <cstdint>
#include <string>

#include "libalpa/base/tensor_type.h"

namespace alpa {

class OptionsVisitor;

enum class Precision { f32, bf16, f16 };
enum class OptimizerKind { adamw, adafactor, sgd };
enum class GradientSum { f32, parameters };
enum class GradientWire { sum, bf16 };
enum class GradientCompression { none, powersgd };
enum class EmbeddingGradients { dense, sparse };
enum class LearningRateSchedule { constant, cosine, linear };

/// What a model is asked to predict.
enum class Objective {
  next_token,  ///< each token from those before it (GPT, Llama)
  masked,      ///< tokens that were hidden from it (BERT)
};

/// The [training] table of a model file.
struct TrainingOptions {
  std::int64_t batch = 8;       ///< samples per step, over all ranks
  std::int64_t sequence = 256;  ///< tokens per sample
  std::int64_t group_samples =
      1;  ///< that batch norms or experts take together: a micro-batch has whole groups
  Objective objective = Objective::next_token;
  std::int64_t mask_token = -1;    ///< masked: what stands for a hidden token; -1: the vocabulary's last id
  std::int64_t document_end = -1;  ///< behind each document of a sequence; -1: a sequence is taken for one
  Precision precision = Precision::f32;
  double loss_scale = 65536;             ///< f16: at the start
  std::int64_t loss_scale_steps = 2000;  ///< f16: without overflow, until it is doubled
  GradientSum gradient_sum = GradientSum::f32;
  GradientWire gradient_wire = GradientWire::sum;
  GradientCompression gradient_compression = GradientCompression::none;
  std::int64_t compression_rank = 4;
  std::int64_t gradient_delay = 0;  ///< steps
  EmbeddingGradients embedding_gradients = EmbeddingGradients::dense;
  double distinct_ids = 0;  ///< sparse: expected share of a device's; 0: WireFormat::distinct_share
  OptimizerKind optimizer = OptimizerKind::adamw;
  double learning_rate = 3e-4;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double weight_decay = 0.1;   ///< decoupled; parameters with two or more dimensions only
  double momentum = 0.9;       ///< sgd
  bool nesterov = false;       ///< sgd
  double gradient_clip = 1.0;  ///< bound on the global gradient norm; 0: none
  LearningRateSchedule schedule = LearningRateSchedule::cosine;
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 0;      ///< the schedule's last ones, at the peak until then; 0: all
  std::int64_t steps = 1000;         ///< steps of the whole run; the schedule ends there
  double final_learning_rate = 0.1;  ///< fraction of learning_rate left at the end
  std::int64_t seed = 1;
  /// What padded( ) and padded_heads( ) round up to multiples of; 0: 1, or what planning finds better.
  std::int64_t pad_to = 0, pad_heads_to = 0;

  bool operator==(const TrainingOptions&) const = default;
};

/// Of activations and parameters.
DType float_type(Precision);

/// What checkpoints keep of them, as lines of TOML: all but what is the plan's to choose.
std::string kept_options(TrainingOptions);

/// The one list of these settings (libalpa/base/options.h).
void describe(TrainingOptions&, OptionsVisitor&);

}  // namespace alpa
